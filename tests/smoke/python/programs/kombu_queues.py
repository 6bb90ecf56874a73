"""kombu: queues that are acknowledged, rejected and restored, priorities, a topic and a fanout exchange."""

import socket
import threading

import redis
from kombu import Connection, Consumer, Exchange, Producer, Queue
from worker import port, wait_for

URL = f"redis://127.0.0.1:{port()}/0"


def simple(connection):
    with connection.SimpleQueue("smoke-simple") as queue:
        for n in range(100):
            queue.put({"n": n}, compression="zlib" if n % 2 else None)
        assert queue.qsize() == 100
        for n in range(100):
            message = queue.get(timeout=20)
            assert message.payload == {"n": n}
            message.ack()
        queue.put("again")
        queue.get(timeout=20).requeue()
        message = queue.get(timeout=20)
        assert message.payload == "again" and message.delivery_info["redelivered"]
        message.reject()
        try:
            queue.get_nowait()
            raise AssertionError("a rejected message came again")
        except queue.Empty:
            pass


def listen(name, queue, got, done):
    """One who listens has a connection of its own, as a process would."""

    def take(body, message):
        got.append((name, body))
        message.ack()

    with Connection(URL) as connection, Consumer(connection, [queue], callbacks=[take]):
        while not done.is_set():
            try:
                connection.drain_events(timeout=2)
            except socket.timeout:
                pass


def exchanges(connection):
    topic, fanout = Exchange("smoke-topic", "topic"), Exchange("smoke-fanout", "fanout")
    queues = {
        "warnings": Queue("smoke-warnings", topic, routing_key="log.*.warning"),
        "all": Queue("smoke-all", topic, routing_key="log.#"),
        "one": Queue("smoke-one", fanout),
        "two": Queue("smoke-two", fanout),
    }
    got, done, client = [], threading.Event(), redis.Redis(port=port())
    threads = [threading.Thread(target=listen, args=(*item, got, done)) for item in queues.items()]
    for thread in threads:
        thread.start()
    for exchange in (topic, fanout):
        wait_for(lambda: client.scard(f"_kombu.binding.{exchange.name}") == 2, "two queues")
    wait_for(lambda: sum(int(c["psub"]) for c in client.client_list()) == 2, "two who hear the fanout")
    logs = Producer(connection, exchange=topic)
    logs.publish("w", routing_key="log.disk.warning")
    logs.publish("i", routing_key="log.disk.info")
    Producer(connection, exchange=fanout).publish("b")
    wait_for(lambda: len(got) == 5, got)
    assert sorted(got) == [("all", "i"), ("all", "w"), ("one", "b"), ("two", "b"), ("warnings", "w")], got
    done.set()
    for thread in threads:
        thread.join()


def restored():
    """What was taken and never acknowledged comes back when its connection is closed."""
    with Connection(URL) as connection:
        queue = connection.SimpleQueue("smoke-restored")
        queue.put("lost?")
        assert queue.get(timeout=20).payload == "lost?"
    with Connection(URL) as connection:
        message = connection.SimpleQueue("smoke-restored").get(timeout=20)
        assert message.payload == "lost?"
        message.ack()


with Connection(URL) as connection:
    simple(connection)
    exchanges(connection)
restored()
print("kombu: ok")
