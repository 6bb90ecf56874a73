"""channels-redis: both channel layers, with groups, a full channel, and receivers who wait."""

import asyncio

from asgiref.sync import async_to_sync  # noqa: F401  (what channels-redis stands on is there)
from channels.exceptions import ChannelFull
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from worker import port

WAIT_SECONDS = 30
HOSTS = [("127.0.0.1", port())]


async def messages(make):
    """Two processes' layers: what one sends the other receives."""
    here, there = make(), make()
    channel = await there.new_channel()
    waiting = asyncio.create_task(there.receive(channel))
    await asyncio.sleep(0.05)
    await here.send(channel, {"type": "direct", "data": b"\x00\xff", "n": 1})
    assert await waiting == {"type": "direct", "data": b"\x00\xff", "n": 1}

    members = [await there.new_channel() for _ in range(5)]
    for member in members:
        await there.group_add("smoke", member)
    waiting = [asyncio.create_task(there.receive(member)) for member in members]
    await asyncio.sleep(0.05)
    await here.group_send("smoke", {"type": "all"})
    assert await asyncio.gather(*waiting) == 5 * [{"type": "all"}]

    await there.group_discard("smoke", members[0])
    left = asyncio.create_task(there.receive(members[0]))
    stays = asyncio.create_task(there.receive(members[1]))
    await asyncio.sleep(0.05)
    await here.group_send("smoke", {"type": "rest"})
    assert await stays == {"type": "rest"}
    await asyncio.sleep(0.2)
    assert not left.done()
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    for layer in (here, there):
        await layer.flush()
        await layer.close_pools() if hasattr(layer, "close_pools") else None


async def capacity():
    layer = RedisChannelLayer(hosts=HOSTS, capacity=3)
    for n in range(3):
        await layer.send("smoke-full", {"type": "n", "n": n})
    try:
        await layer.send("smoke-full", {"type": "n", "n": 3})
        raise AssertionError("the channel holds more than it may")
    except ChannelFull:
        pass
    assert [(await layer.receive("smoke-full"))["n"] for _ in range(3)] == [0, 1, 2]
    await layer.flush()
    await layer.close_pools()


async def main():
    await messages(lambda: RedisChannelLayer(hosts=HOSTS))
    await messages(lambda: RedisPubSubChannelLayer(hosts=HOSTS))
    await capacity()


asyncio.run(asyncio.wait_for(main(), WAIT_SECONDS))
print("channels-redis: ok")
