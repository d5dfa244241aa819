deferred = False
