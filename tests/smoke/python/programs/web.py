"""What web frameworks keep: django-redis (cache, locks, sessions), Flask-Caching and Flask-Session."""

import threading

import django
from django.conf import settings
from worker import port

URL = f"redis://127.0.0.1:{port()}/5"
settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": URL, "KEY_PREFIX": "smoke"}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache", SECRET_KEY="smoke", USE_TZ=True,
)  # fmt: skip
django.setup()

from django.core.cache import cache  # noqa: E402  (needs the settings)


def django_cache():
    assert cache.set("greeting", {"hello": ["world", 1]}, timeout=100)
    assert cache.get("greeting") == {"hello": ["world", 1]} and 95 < cache.ttl("greeting") <= 100
    assert cache.add("greeting", 1) is False and cache.get("absent", "default") == "default"
    cache.set_many({f"many:{n}": n for n in range(300)})
    assert cache.get_many(["many:1", "many:2", "absent"]) == {"many:1": 1, "many:2": 2}
    assert sorted(cache.iter_keys("many:*", itersize=20)) == sorted(f"many:{n}" for n in range(300))
    assert cache.delete_pattern("many:1*", itersize=50) == 111 and len(cache.keys("many:*")) == 189
    cache.set("count", 1)
    assert cache.incr("count", 5) == 6 and cache.decr("count") == 5
    try:
        cache.incr("nobody")  # a script finds that it is not there
        raise AssertionError("counted what is not there")
    except ValueError:
        pass
    assert cache.persist("greeting") and cache.ttl("greeting") is None
    assert cache.touch("greeting", 50) and cache.expire("greeting", 70) and 65 < cache.ttl("greeting") <= 70

    def count():
        for _ in range(10):
            with cache.lock("lock", timeout=30, sleep=0.002):
                cache.set("sum", cache.get("sum", 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get("sum") == 30


def django_sessions():
    from django.contrib.sessions.backends.cache import SessionStore

    session = SessionStore()
    session["user"] = 7
    session.set_expiry(60)
    session.save()
    again = SessionStore(session_key=session.session_key)
    assert again["user"] == 7
    again.flush()
    assert SessionStore(session_key=session.session_key).load() == {}


def flask():
    import flask
    import redis
    from flask_caching import Cache
    from flask_session import Session

    app = flask.Flask("smoke")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=redis.from_url(URL), CACHE_TYPE="RedisCache",
                      CACHE_REDIS_URL=URL, CACHE_DEFAULT_TIMEOUT=60)  # fmt: skip
    Session(app)
    kept = Cache(app)
    called = []

    @app.route("/visits")
    def visits():
        flask.session["visits"] = flask.session.get("visits", 0) + 1
        return str(flask.session["visits"])

    @app.route("/slow")
    @kept.cached(query_string=True)
    def slow():
        called.append(flask.request.args.get("page"))
        return f"page {flask.request.args.get('page')}"

    @kept.memoize(30)
    def square(n):
        called.append(n)
        return n * n

    ann, bob = app.test_client(), app.test_client()
    assert [ann.get("/visits").text for _ in range(3)] == ["1", "2", "3"] and bob.get("/visits").text == "1"
    assert [ann.get(f"/slow?page={page}").text for page in (1, 2, 1)] == ["page 1", "page 2", "page 1"]
    assert called == ["1", "2"]
    with app.app_context():
        assert [square(4), square(4)] == [16, 16] and called == ["1", "2", 4]
        kept.delete_memoized(square)
        assert square(4) == 16 and called == ["1", "2", 4, 4]


django_cache()
django_sessions()
flask()
print("django-redis and Flask: ok")
