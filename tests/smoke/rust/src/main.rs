// redis-rs against a server: smoke port protocol, port of TLS, certificate of its CA.
use redis::streams::{StreamAutoClaimOptions, StreamAutoClaimReply, StreamInfoGroupsReply, StreamPendingReply, StreamReadOptions, StreamReadReply};
use redis::{Client, Commands, Connection, ErrorKind, FromRedisValue, Iter, PushInfo, PushKind, RedisResult, Value};
use std::collections::{HashMap, HashSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn fails<T: std::fmt::Debug>(answer: RedisResult<T>, text: &str) {
    let error = answer.expect_err(text).to_string();
    assert!(error.contains(text), "{error}");
}

fn strings(r: &mut Connection) -> RedisResult<()> {
    assert_eq!(r.set::<_, _, String>("greeting", "hello")?, "OK");
    assert_eq!(r.get::<_, Option<String>>("absent")?, None);
    assert!(!r.set_nx::<_, _, bool>("greeting", "again")?);
    assert_eq!(r.incr::<_, _, i64>("count", 6)?, 6);
    assert_eq!(r.incr::<_, _, f64>("real", 1.5)?, 1.5);
    let everything: Vec<u8> = (0..=255).collect();
    r.set::<_, _, ()>(&everything, &everything)?;
    assert_eq!(r.get::<_, Vec<u8>>(&everything)?, everything);
    r.hset_multiple::<_, _, _, ()>("h", &[("a", 1), ("b", 2)])?;
    assert_eq!(r.hgetall::<_, HashMap<String, i64>>("h")?, HashMap::from([("a".into(), 1), ("b".into(), 2)]));
    r.zadd_multiple::<_, _, _, ()>("z", &[(1.0, "one"), (2.5, "two")])?;
    assert_eq!(r.zrange_withscores::<_, Vec<(String, f64)>>("z", 0, -1)?, [("one".to_string(), 1.0), ("two".to_string(), 2.5)]);
    fails(r.incr::<_, _, i64>("greeting", 1), "not an integer");
    fails(r.lpush::<_, _, i64>("h", 1), "WRONGTYPE");
    Ok(())
}

fn pipelines(r: &mut Connection) -> RedisResult<()> {
    let mut pipe = redis::pipe();
    for n in 0..1000 {
        pipe.set(format!("p:{n}"), n).ignore().get(format!("p:{n}"));
    }
    assert_eq!(pipe.query::<Vec<i64>>(r)?, (0..1000).collect::<Vec<_>>());
    Ok(())
}

fn transactions(r: &mut Connection, other: &mut Connection) -> RedisResult<()> {
    r.set::<_, _, ()>("t", 1)?;
    let mut attempts = 0;
    let (found,): (i64,) = redis::transaction(r, &["t"], |r, pipe| {
        attempts += 1;
        let before: i64 = r.get("t")?;
        if attempts == 1 {
            other.set::<_, _, ()>("t", 100)?; // a conflict
        }
        pipe.set("t", before + 1).ignore().get("t").query(r)
    })?;
    assert_eq!((attempts, found), (2, 101));
    Ok(())
}

fn scripts(r: &mut Connection) -> RedisResult<()> {
    let script = redis::Script::new("return {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[1]}");
    redis::cmd("SCRIPT").arg("FLUSH").exec(r)?;
    for n in 1..=2 {
        assert_eq!(script.key("n").arg(5).invoke::<(i64, String)>(r)?, (5 * n, "5".into()));
    }
    let library = "#!lua name=smoke\nredis.register_function('twice', function(k, a) return 2 * a[1] end)";
    assert_eq!(redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(library).query::<String>(r)?, "smoke");
    assert_eq!(redis::cmd("FCALL").arg("twice").arg(0).arg(21).query::<i64>(r)?, 42);
    let error = redis::cmd("EVALSHA").arg("x".repeat(40)).arg(0).exec(r).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoScriptError);
    Ok(())
}

fn publishing(client: &Client, r: &mut Connection) -> RedisResult<()> {
    let mut hears = client.get_connection()?;
    let mut listener = hears.as_pubsub();
    listener.set_read_timeout(Some(PATIENCE))?;
    listener.subscribe("smoke:news")?;
    listener.psubscribe("smoke:w*")?;
    assert_eq!(r.publish::<_, _, i64>("smoke:news", "one")?, 1);
    assert_eq!(r.publish::<_, _, i64>("smoke:weather", vec![0u8, 255])?, 1);
    let message = listener.get_message()?;
    assert_eq!((message.get_channel_name(), message.get_payload::<String>()?), ("smoke:news", "one".into()));
    let message = listener.get_message()?;
    assert_eq!(message.get_pattern::<String>()?, "smoke:w*");
    assert_eq!(message.get_payload_bytes(), [0, 255]);
    listener.unsubscribe("smoke:news")?;
    assert_eq!(r.publish::<_, _, i64>("smoke:news", "two")?, 0);
    Ok(())
}

fn blocking(client: &Client, r: &mut Connection) -> RedisResult<()> {
    let mut waiting = client.get_connection()?;
    assert_eq!(waiting.blpop::<_, Option<(String, String)>>("smoke:absent", 0.05)?, None);
    let popping = std::thread::spawn(move || waiting.blpop::<_, (String, String)>(&["smoke:none", "smoke:queue"], 20.0));
    wait_for("a blocked client", || {
        redis::cmd("INFO").arg("clients").query::<String>(r).unwrap().contains("blocked_clients:1")
    });
    r.rpush::<_, _, ()>("smoke:queue", "job")?;
    assert_eq!(popping.join().unwrap()?, ("smoke:queue".into(), "job".into()));
    r.zadd::<_, _, _, ()>("smoke:ranked", "a", 1.5)?;
    assert_eq!(r.bzpopmin::<_, (String, String, f64)>("smoke:ranked", 20.0)?, ("smoke:ranked".into(), "a".into(), 1.5));
    Ok(())
}

fn streams(r: &mut Connection) -> RedisResult<()> {
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(r.xadd::<_, _, _, _, String>("smoke:log", "*", &[("n", n)])?);
    }
    r.xgroup_create::<_, _, _, ()>("smoke:log", "workers", "0")?;
    fails(r.xgroup_create::<_, _, _, ()>("smoke:log", "workers", "0"), "BUSYGROUP");
    let mut read = |consumer: &str, options: StreamReadOptions| -> RedisResult<Vec<String>> {
        let found: StreamReadReply = r.xread_options(&["smoke:log"], &[">"], &options.group("workers", consumer))?;
        Ok(found.keys[0].ids.iter().map(|entry| entry.id.clone()).collect())
    };
    assert_eq!(read("ann", StreamReadOptions::default().count(12))?, ids[..12]);
    assert_eq!(read("bob", StreamReadOptions::default().block(20_000))?, ids[12..]);
    assert_eq!(r.xack::<_, _, _, i64>("smoke:log", "workers", &ids[..10])?, 10);
    let pending: StreamPendingReply = r.xpending("smoke:log", "workers")?;
    assert_eq!(pending.count(), 10);
    let options = StreamAutoClaimOptions::default().count(2);
    let claimed: StreamAutoClaimReply = r.xautoclaim_options("smoke:log", "workers", "bob", 0, "0-0", options)?;
    assert_eq!(claimed.claimed.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&ids[10], &ids[11]]);
    let groups: StreamInfoGroupsReply = r.xinfo_groups("smoke:log")?;
    assert_eq!((groups.groups[0].name.as_str(), groups.groups[0].pending), ("workers", 10));
    Ok(())
}

fn iterators(r: &mut Connection) -> RedisResult<()> {
    let fields: HashMap<String, i64> = (0..700).map(|n| (format!("f{n}"), n)).collect();
    let pairs: Vec<_> = fields.iter().collect();
    r.hset_multiple::<_, _, _, ()>("smoke:hash", &pairs)?;
    let found: Iter<(String, i64)> = r.hscan("smoke:hash")?;
    let found: HashMap<String, i64> = found.collect::<RedisResult<_>>()?;
    assert_eq!(found, fields);
    let keys: Iter<String> = r.scan_match("p:*")?;
    assert_eq!(keys.collect::<RedisResult<HashSet<_>>>()?.len(), 1000);
    Ok(())
}

// RESP3: invalidations come among the answers.
fn tracking(client: &Client, other: &mut Connection) -> RedisResult<()> {
    let mut r = client.get_connection()?;
    let (sender, pushes) = mpsc::channel::<PushInfo>();
    r.set_push_sender(sender);
    redis::cmd("CLIENT").arg("TRACKING").arg("ON").exec(&mut r)?;
    other.set::<_, _, ()>("smoke:cached", 1)?;
    r.get::<_, i64>("smoke:cached")?;
    other.set::<_, _, ()>("smoke:cached", 2)?;
    let mut heard = None;
    wait_for("an invalidation", || {
        redis::cmd("PING").exec(&mut r).unwrap();
        heard = pushes.try_iter().find(|push| push.kind == PushKind::Invalidate);
        heard.is_some()
    });
    let keys = Vec::<Vec<String>>::from_redis_value(&Value::Array(heard.unwrap().data))?;
    assert_eq!(keys, [["smoke:cached"]]);
    Ok(())
}

fn secured(protocol: &str, port: &str, ca_file: &str) -> RedisResult<()> {
    std::env::set_var("SSL_CERT_FILE", ca_file); // what OpenSSL trusts
    let connect = |password: &str| {
        let address = format!("rediss://smoke:{password}@127.0.0.1:{port}/?protocol={protocol}");
        Client::open(address)?.get_connection()
    };
    let mut r = connect("secret")?;
    r.set::<_, _, ()>("smoke:secret", "x".repeat(200_000))?;
    assert_eq!(r.get::<_, String>("smoke:secret")?.len(), 200_000);
    fails(r.get::<_, String>("another's"), "NOPERM");
    let refused = connect("wrong").err().expect("a refusal").to_string();
    assert!(refused.contains("WRONGPASS") || refused.contains("AuthenticationFailed"), "{refused}");
    Ok(())
}

fn main() -> RedisResult<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let protocol = if arguments[2] == "3" { "resp3" } else { "resp2" };
    let client = Client::open(format!("redis://127.0.0.1:{}/?protocol={protocol}", arguments[1]))?;
    let (mut r, mut other) = (client.get_connection()?, client.get_connection()?);
    strings(&mut r)?;
    pipelines(&mut r)?;
    transactions(&mut r, &mut other)?;
    scripts(&mut r)?;
    publishing(&client, &mut r)?;
    blocking(&client, &mut r)?;
    streams(&mut r)?;
    iterators(&mut r)?;
    if protocol == "resp3" {
        tracking(&client, &mut other)?;
    }
    secured(protocol, &arguments[3], &arguments[4])?;
    println!("redis-rs, {protocol}: ok");
    Ok(())
}
