from hello.greeting import greeting
from hello.limits import REPEAT

for _ in range(REPEAT):
    print(greeting("world"))
