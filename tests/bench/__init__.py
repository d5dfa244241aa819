"""What things cost, beside programs that do the same."""
