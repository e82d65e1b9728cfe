use super::*;
use crate::time::{Clock, SimClock, secs};
use crate::transport::cutter::Cutter;
use crate::transport::socket::Socket;
use std::net::{TcpListener, TcpStream};

struct Bench {
    listener: TcpListener,
    cutter: Arc<Cutter>,
    clock: SimClock,
    /// The other ends, which have to live.
    peers: Vec<TcpStream>,
}

impl Bench {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (cutter, clock) = (Arc::default(), SimClock::default());
        Self { listener, cutter, clock, peers: Vec::new() }
    }

    fn conn(&mut self, key: &str, identity: Identity) -> Conn {
        let socket = self.socket();
        Conn { identity, ..self.over(&socket, key.as_bytes()) }
    }

    /// A direct connection over a socket that may stand for others, too.
    fn over(&self, socket: &Arc<TcpStream>, key: &[u8]) -> Conn {
        let registration = self.cutter.register(socket);
        Conn {
            stream: Stream::plain(Socket::new(Arc::clone(socket), registration)),
            key: Arc::from(key),
            identity: Identity::DIRECT,
            tls: None,
            idle_since: None,
            returns: 0,
            place: None,
        }
    }

    /// A socket that stands for all: what is counted is what the pool holds of it.
    fn socket(&mut self) -> Arc<TcpStream> {
        let socket = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        self.peers.push(self.listener.accept().unwrap().0);
        Arc::new(socket)
    }
}

#[test]
fn hosts_leave_in_the_order_of_their_last_use() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(2, 1, false);
    let now = bench.clock.now();
    for key in ["a", "b"] {
        let conn = bench.conn(key, Identity::DIRECT);
        pool.give_back(conn, now);
    }
    let a = pool.take(b"a", now, None).unwrap();
    pool.give_back(a, now);
    let conn = bench.conn("c", Identity::DIRECT);
    pool.give_back(conn, now);
    assert!(pool.take(b"b", now, None).is_none());
    assert!(pool.take(b"a", now, None).is_some());
    assert!(pool.take(b"c", now, None).is_some());
    assert_eq!(bench.cutter.live_sockets(), 0);
}

#[test]
fn no_more_than_the_limit_of_each_host_and_the_youngest_first() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(2, 2, false);
    let start = bench.clock.now();
    for _ in 0..3 {
        let conn = bench.conn("a", Identity::DIRECT);
        pool.give_back(conn, start);
    }
    assert_eq!(bench.cutter.live_sockets(), 2);
    let later = start + secs(1.0);
    let conn = pool.take(b"a", later, None).unwrap();
    pool.give_back(conn, later);
    assert_eq!(pool.take(b"a", later, None).unwrap().idle_since, Some(later));
    assert_eq!(pool.take(b"a", later, None).unwrap().idle_since, Some(start));
    assert!(pool.take(b"a", later, None).is_none());
}

#[test]
fn a_connection_too_many_is_worth_a_warning_a_minute() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(2, 2, false);
    let start = bench.clock.now();
    let key = b"\x00\x00\x00\x00\x00\x00\x00\x00s\x01\xbbshop.test";
    let mut surplus = bench.conn("", Identity::DIRECT);
    surplus.key = Arc::from(key.as_slice());
    let warned = |after: f64| pool.lock().warning(&surplus, 2, start + secs(after));
    let text = warned(0.0).unwrap();
    for part in ["to shop.test ", "since 2 idle", "pool_maxsize"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(warned(59.9), None);
    assert!(warned(60.0).is_some());
}

#[test]
fn old_dead_and_talking_connections_are_not_handed_out() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let start = bench.clock.now();
    let conn = bench.conn("old", Identity::DIRECT);
    pool.give_back(conn, start);
    assert!(pool.take(b"old", start + MAX_IDLE, None).is_none());

    let conn = bench.conn("dead", Identity::DIRECT);
    pool.give_back(conn, start);
    bench.peers.pop();
    assert!(pool.take(b"dead", start + FRESH, None).is_none());

    let conn = bench.conn("talking", Identity::DIRECT);
    pool.give_back(conn, start);
    let mut peer = bench.peers.pop().unwrap();
    std::io::Write::write_all(&mut peer, b"HTTP/1.1 408 Timeout\r\n\r\n").unwrap();
    assert!(pool.take(b"talking", start + FRESH, None).is_none());
    assert_eq!(bench.cutter.live_sockets(), 0);
}

#[test]
fn what_has_not_kept_before_is_looked_at_and_listened_to() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let now = bench.clock.now();
    // Its end has come, just after it was given back.
    let ended = |bench: &mut Bench, returns: u32| {
        let mut conn = bench.conn("a", Identity::DIRECT);
        conn.returns = returns;
        pool.give_back(conn, now);
        bench.peers.pop();
    };
    for (returns, listen, handed_out) in [
        (0, None, false),
        (0, Some(GOODBYE), false),
        // It has kept before: only a request that cannot be sent twice is worth a look.
        (1, None, true),
        (1, Some(GOODBYE), false),
    ] {
        ended(&mut bench, returns);
        let taken = pool.take(b"a", now, listen);
        assert_eq!(taken.is_some(), handed_out, "{returns} {listen:?}");
    }

    // Its end is on its way.
    let conn = bench.conn("a", Identity::DIRECT);
    pool.give_back(conn, now);
    let peer = bench.peers.pop();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(peer));
        assert!(pool.take(b"a", now, Some(secs(20.0))).is_none());
    });

    // It stays; so long since, that nothing is left to listen for.
    let conn = bench.conn("a", Identity::DIRECT);
    pool.give_back(conn, now);
    assert!(pool.take(b"a", now + secs(1.0), Some(secs(1.0))).is_some());
    assert_eq!(bench.cutter.live_sockets(), 0);
}

#[test]
fn a_return_closes_what_has_aged_elsewhere() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let start = bench.clock.now();
    let conn = bench.conn("a", Identity::DIRECT);
    pool.give_back(conn, start);
    let conn = bench.conn("b", Identity::DIRECT);
    pool.give_back(conn, start + MAX_IDLE);
    assert_eq!(bench.cutter.live_sockets(), 1);
}

#[test]
fn a_host_without_connections_does_not_keep_others_from_ageing() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let start = bench.clock.now();
    for key in ["gone", "old"] {
        let conn = bench.conn(key, Identity::DIRECT);
        pool.give_back(conn, start);
    }
    drop(pool.take(b"gone", start, None));
    // Older than the empty one, and both older than this.
    let old = pool.take(b"old", start, None).unwrap();
    pool.give_back(old, start);
    let conn = bench.conn("new", Identity::DIRECT);
    pool.give_back(conn, start + MAX_IDLE);
    assert_eq!(bench.cutter.live_sockets(), 1);
    assert_eq!(pool.lock().index.len(), 1);
}

#[test]
fn a_fresh_connection_takes_the_place_of_those_that_stand() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let now = bench.clock.now();
    for key in ["a", "a", "b"] {
        let conn = bench.conn(key, Identity::DIRECT);
        pool.give_back(conn, now);
    }
    pool.close(b"a");
    assert!(pool.take(b"a", now, None).is_none());
    assert_eq!(bench.cutter.live_sockets(), 1, "the other host keeps its connection");
    pool.close(b"never heard of");
}

#[test]
fn a_hundred_thousand_rotating_users_leave_few_connections() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(10, 10, false);
    let now = bench.clock.now();
    let socket = bench.socket();
    for number in 0..100_000u32 {
        let conn = bench.over(&socket, &number.to_ne_bytes());
        pool.give_back(conn, now);
        assert!(bench.cutter.live_sockets() <= 10);
    }
    assert_eq!(pool.kept(), (10, 10));
    let state = pool.lock();
    assert!(state.slab.len() <= 11 && state.free.len() <= 1, "places are used again");
}

#[test]
fn c146_a_request_takes_the_same_steps_beside_ten_hosts_and_beside_two_thousand() {
    // The most looks at hosts that a request of the second and the third round costs.
    let most_steps = |hosts: u32| {
        let mut bench = Bench::new();
        let pool = IdlePool::new(2000, 10, false);
        let start = bench.clock.now();
        let socket = bench.socket();
        for number in 0..hosts {
            pool.give_back(bench.over(&socket, &number.to_ne_bytes()), start);
        }
        let mut most = 0;
        for round in [1.0, 2.0] {
            for number in 0..hosts {
                let before = pool.lock().slab.steps();
                let conn = pool.take(&number.to_ne_bytes(), start + secs(round), None).unwrap();
                pool.give_back(conn, start + secs(round));
                most = most.max(pool.lock().slab.steps() - before);
            }
        }
        assert_eq!(pool.kept(), (hosts as usize, hosts as usize));
        most
    };
    let (few, many) = (most_steps(10), most_steps(2000));
    assert_eq!(few, many);
    assert!(few < 30, "{few} looks at hosts for one request");
}

#[test]
fn forgetting_an_identity_closes_its_connections_alone() {
    let mut bench = Bench::new();
    let pool = IdlePool::new(8, 8, false);
    let now = bench.clock.now();
    // Identities come from proxies; a second one is enough to tell them apart.
    let other: crate::proxy::Route = crate::proxy::Route::direct();
    let conn = bench.conn("a", other.identity);
    pool.give_back(conn, now);
    pool.forget(Identity::DIRECT);
    assert!(pool.take(b"a", now, None).is_none());
    assert_eq!(bench.cutter.live_sockets(), 0);
}
