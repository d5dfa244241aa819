def greeting(name: str) -> str:
    return f"Goodbye, {name}."
