//! The pool over workers that are threads of this process.

use carrack_core::location::Location;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use carrack_core::request::Reach;
use carrack_engine::Context;
use tempfile::TempDir;

use super::*;
use crate::clock::{Clock, Moment, SystemClock};
use crate::model::Verb;
use crate::worker::EndOrder;
use crate::worker::files::{Ask, FilesOrder, Means, serve};

/// Starts workers as threads.
pub struct Threads;

impl Start for Threads {
    fn start(&self) -> io::Result<Started> {
        let (stream, far) = UnixStream::pair()?;
        // What is behind ssh is soon known not to be there.
        let reach = Reach { rsh: vec!["false".into()], ..Reach::default() };
        let means = Means { context: Context::default(), reach, stream: far };
        std::thread::spawn(move || serve(means));
        Ok(Started { stream, complaints: None, child: None })
    }
}

/// Workers that take an order and never answer.
struct Silent;

impl Start for Silent {
    fn start(&self) -> io::Result<Started> {
        let (stream, far) = UnixStream::pair()?;
        std::thread::spawn(move || io::copy(&mut &far, &mut io::sink()));
        Ok(Started { stream, complaints: None, child: None })
    }
}

fn key(user: &str, endpoint: &str) -> Key {
    Key {
        user: user.into(),
        token: None,
        expires: None,
        run_time: None,
        rights: vec![Verb::Read, Verb::Write],
        within: "/".into(),
        endpoint: endpoint.into(),
        owner: "ann".into(),
        version: (Moment(0), 1),
    }
}

fn order(root: &Path, within: &str, rights: &[Verb]) -> FilesOrder {
    let root = Location::Local(root.as_os_str().as_encoded_bytes().to_vec());
    let end = EndOrder::at_endpoint(root, b"", false, None);
    FilesOrder { name: "lab".into(), end, within: within.into(), rights: rights.to_vec() }
}

fn pool(start: impl Start) -> Arc<Pool> {
    Pool::new(Box::new(start), Arc::new(SystemClock::new()))
}

fn lease(pool: &Arc<Pool>, key: &Key, directory: &TempDir) -> Result<Lease, FilesError> {
    pool.lease(key, || Ok(order(directory.path(), "/", &[Verb::Read, Verb::Write])))
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test)
}

fn make(path: &str) -> Ask {
    Ask::MakeDirectory { path: path.into(), parents: false }
}

async fn code(lease: &Lease, ask: Ask) -> String {
    match lease.ask(ask, b"").unwrap().answer().await {
        Ok(_) => "done".into(),
        Err(FilesError::Failed(failure)) => failure.code,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn pool_lends_one_worker_to_requests_with_one_key() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Threads);
        let one = lease(&pool, &key("ann", "lab"), &directory).unwrap();
        let two = lease(&pool, &key("ann", "lab"), &directory).unwrap();
        assert_eq!(pool.count(), 1);
        assert_eq!(code(&one, make("/a")).await, "done");
        assert_eq!(code(&two, make("/a")).await, "already-exists");
        assert!(directory.path().join("a").is_dir());
        for other in [key("bob", "lab"), Key { version: (Moment(0), 2), ..key("ann", "lab") }] {
            drop(lease(&pool, &other, &directory).unwrap());
        }
        assert_eq!(pool.count(), 3);
        pool.stop();
        assert_eq!(one.ask(make("/b"), b"").err(), Some(FilesError::Lost("the service ends".into())));
        assert_eq!(lease(&pool, &key("ann", "lab"), &directory).err(), Some(FilesError::Stopping));
    });
}

/// A clock that is put forward.
#[derive(Default)]
struct Forward(AtomicI64);

impl Clock for Forward {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a worker shows at its endpoint holds for a day: one that is used all the while is replaced in time.
#[test]
fn worker_that_is_always_used_is_replaced_before_its_grant_ends() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let clock = Arc::new(Forward::default());
        let pool = Pool::new(Box::new(Threads), Arc::clone(&clock) as Arc<dyn Clock>);
        let first = lease(&pool, &key("ann", "lab"), &directory).unwrap();
        let put_forward = |by: Duration| clock.0.fetch_add(by.as_micros() as i64, Ordering::Relaxed);
        put_forward(LENT - Duration::from_secs(1));
        drop(lease(&pool, &key("ann", "lab"), &directory).unwrap());
        assert_eq!(pool.count(), 1);
        put_forward(Duration::from_secs(1));
        let second = lease(&pool, &key("ann", "lab"), &directory).unwrap();
        assert_eq!((code(&first, make("/a")).await, code(&second, make("/b")).await), ("done".into(), "done".into()));
        assert_eq!(pool.count(), 2, "what was begun goes on");
        drop(first);
        let start = std::time::Instant::now();
        while pool.count() > 1 && start.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((pool.count(), second.is_alive()), (1, true));
    });
}

#[test]
fn request_ends_when_it_has_taken_as_long_as_it_may() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Silent);
        let bounded = Key { run_time: Some(Duration::from_millis(50)), ..key("ann", "lab") };
        let lease = lease(&pool, &bounded, &directory).unwrap();
        let mut asked = lease.ask(make("/a"), b"").unwrap();
        let told = tokio::time::timeout(Duration::from_secs(20), asked.next()).await;
        assert_eq!(told, Ok(Err(FilesError::OverTime)));
        assert_eq!(asked.next().await, Ok(None));
        // The worker has others to serve.
        assert!(lease.is_alive());
    });
}

/// An answer that is there does not count for a reader who has taken too long before.
#[test]
fn request_ends_for_a_slow_reader_too() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Threads);
        let bounded = Key { run_time: Some(Duration::from_millis(50)), ..key("ann", "lab") };
        let lease = lease(&pool, &bounded, &directory).unwrap();
        let mut asked = lease.ask(make("/a"), b"").unwrap();
        let (begun, made) = (std::time::Instant::now(), directory.path().join("a"));
        while begun.elapsed() < Duration::from_millis(60) || !made.is_dir() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(asked.next().await, Err(FilesError::OverTime));
    });
}

#[test]
fn pool_takes_a_worker_that_nobody_uses_for_another_endpoint_and_refuses_where_all_are_used() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Threads);
        let at = |number: usize| key("ann", &format!("lab{number}"));
        let mut held: Vec<Lease> = (0..4).map(|number| lease(&pool, &at(number), &directory).unwrap()).collect();
        assert_eq!(lease(&pool, &at(4), &directory).err(), Some(FilesError::Busy));
        // Others have their own.
        drop(lease(&pool, &key("bob", "lab0"), &directory).unwrap());
        let first = held.remove(1);
        drop(first);
        held.push(lease(&pool, &at(4), &directory).unwrap());
        assert_eq!(pool.count(), 5);
        assert!(held.iter().all(Lease::is_alive));
    });
}

#[test]
fn pool_tells_requests_under_way_why_their_worker_was_ended() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Silent);
        let (ann, bob) = (key("ann", "lab"), key("bob", "lab"));
        let (of_ann, of_bob) = (lease(&pool, &ann, &directory).unwrap(), lease(&pool, &bob, &directory).unwrap());
        let waiting = of_ann.ask(make("/a"), b"").unwrap();
        pool.end_where("it was revoked", |key| key.user == "ann");
        assert_eq!(waiting.answer().await, Err(FilesError::Lost("it was revoked".into())));
        assert!(!of_ann.is_alive() && of_bob.is_alive());
        assert_eq!(pool.count(), 1);
    });
}

#[test]
fn pool_ends_a_worker_whose_token_has_expired() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Silent);
        let soon = SystemClock::new().now().after(Duration::from_millis(100));
        let key = Key { expires: Some(soon), ..key("ann", "lab") };
        let lease = lease(&pool, &key, &directory).unwrap();
        let waiting = lease.ask(make("/a"), b"").unwrap();
        assert_eq!(waiting.answer().await, Err(FilesError::Lost("the caller's token has expired".into())));
    });
}

#[test]
fn pool_refuses_more_requests_at_once_than_a_worker_may_have() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let pool = pool(Silent);
        let lease = lease(&pool, &key("ann", "lab"), &directory).unwrap();
        let mut held: Vec<Conversation> = (0..32).map(|_| lease.ask(make("/a"), b"").unwrap()).collect();
        assert_eq!(lease.ask(make("/a"), b"").err(), Some(FilesError::Busy));
        held.pop();
        assert!(lease.ask(make("/a"), b"").is_ok());
    });
}

#[test]
fn file_worker_does_only_what_its_order_allows() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("run/in")).unwrap();
    std::fs::create_dir(directory.path().join("else")).unwrap();
    std::os::unix::fs::symlink("../else", directory.path().join("run/link")).unwrap();
    std::os::unix::fs::symlink("/", directory.path().join("run/out")).unwrap();
    run(async {
        let pool = pool(Threads);
        let order = order(directory.path(), "/run", &[Verb::Read, Verb::Write]);
        let lease = pool.lease(&key("ann", "lab"), || Ok::<_, FilesError>(order)).unwrap();
        assert_eq!(code(&lease, make("/run/new")).await, "done");
        for path in ["/else/a", "/runner", "/run/../else/a", "/run/%2e%2e/a", "a", "/"] {
            let refused = code(&lease, make(path)).await;
            assert!(["permission-denied", "outside-root"].contains(&&*refused), "{path}: {refused}");
        }
        // Links may not lead out of what the order is for, wherever they stand.
        for path in ["/run/link/a", "/run/out/tmp/a"] {
            assert_ne!(code(&lease, make(path)).await, "done", "{path}");
        }
        assert!(std::fs::read_dir(directory.path().join("else")).unwrap().next().is_none());
        let rename = |replace| Ask::Rename { from: "/run/new".into(), to: "/run/in2".into(), replace };
        assert_eq!(code(&lease, rename(true)).await, "permission-denied", "to replace is to delete");
        assert_eq!(code(&lease, rename(false)).await, "done");
    });
}
