//! The relay between two sockets of the test's own.

use super::*;

/// A target, the proxy before it, and a connection through both.
fn scene(seed: u64) -> (TcpListener, Proxy) {
    let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::with_seed(target.local_addr().unwrap(), seed);
    (target, proxy)
}

fn connect(target: &TcpListener, proxy: &Proxy) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(proxy.address()).unwrap();
    let (far, _) = target.accept().unwrap();
    (near, far)
}

fn take(from: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn bytes_and_ends_are_passed_on_and_counted() {
    let (target, proxy) = scene(0);
    let (mut near, mut far) = connect(&target, &proxy);
    let sent: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    let writer = {
        let (sent, mut near) = (sent.clone(), near.try_clone().unwrap());
        std::thread::spawn(move || {
            near.write_all(&sent).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
        })
    };
    let mut came = Vec::new();
    far.read_to_end(&mut came).unwrap();
    writer.join().unwrap();
    assert!(came == sent);
    far.write_all(b"answer").unwrap();
    drop(far);
    came.clear();
    near.read_to_end(&mut came).unwrap();
    assert_eq!(came, b"answer");
    let carried = proxy.carried();
    assert_eq!((carried.up, carried.down), (3_000_000, 6));
    assert_eq!(proxy.made(), Made::default());
}

#[test]
fn reset_is_a_reset_on_both_sides_and_only_where_it_was_asked_for() {
    let (target, proxy) = scene(0);
    let (mut one, mut far_one) = connect(&target, &proxy);
    let (mut two, mut far_two) = connect(&target, &proxy);
    far_one.write_all(b"1").unwrap();
    take(&mut one, 1);
    assert!(proxy.reset(0));
    for socket in [&mut one, &mut far_one] {
        assert_eq!(socket.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
    far_two.write_all(b"2").unwrap();
    assert_eq!(take(&mut two, 1), b"2");
    assert_eq!(proxy.reset_all(), 1);
    assert!(two.read(&mut [0; 1]).is_err());
    assert_eq!(proxy.made().resets, 2);
}

#[test]
fn connections_are_refused_as_often_as_was_asked_for() {
    let (target, proxy) = scene(7);
    proxy.refuse_next(1);
    let refused =
        |mut near: TcpStream| near.read(&mut [0; 1]).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset);
    assert!(refused(TcpStream::connect(proxy.address()).unwrap()));
    connect(&target, &proxy);
    proxy.refuse(1.0);
    assert!(refused(TcpStream::connect(proxy.address()).unwrap()));
    assert_eq!(proxy.made().refused, 2);
    assert_eq!(proxy.connections().len(), 1);
}

#[test]
fn stalled_connection_goes_on_when_it_is_released() {
    let (target, proxy) = scene(0);
    let (mut near, mut far) = connect(&target, &proxy);
    proxy.stall(true);
    // Whatever the relay had in hand when it was told: more than that does not get through.
    near.set_nonblocking(true).unwrap();
    let mut written = 0;
    while let Ok(count) = near.write(&[7; 65536]) {
        written += count;
    }
    let before = proxy.carried().up;
    assert!(before < written as u64);
    proxy.stall(false);
    assert_eq!(take(&mut far, written), vec![7; written]);
    assert_eq!(proxy.carried().up, written as u64);
}

#[test]
fn chosen_bytes_are_altered_and_no_others() {
    let (target, proxy) = scene(0);
    proxy.flip(Way::Up, Flip::At(100_000), 10);
    let (mut near, mut far) = connect(&target, &proxy);
    let there = std::thread::spawn(move || take(&mut far, 200_000));
    near.write_all(&[0; 200_000]).unwrap();
    let came = there.join().unwrap();
    assert_eq!(came.iter().position(|&byte| byte != 0), Some(100_000));
    assert_eq!(came.iter().filter(|&&byte| byte != 0).count(), 1);

    proxy.flip(Way::Down, Flip::Every(1000), 3);
    let (mut near, mut far) = connect(&target, &proxy);
    let back = std::thread::spawn(move || take(&mut near, 100_000));
    far.write_all(&[0; 100_000]).unwrap();
    let came = back.join().unwrap();
    let altered: Vec<usize> = came.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at).collect();
    assert_eq!(altered, [999, 1999, 2999]);
    assert_eq!(proxy.made().flips, 4);
}

#[test]
fn delay_and_a_rate_hold_bytes_back() {
    let (target, proxy) = scene(0);
    let (mut near, mut far) = connect(&target, &proxy);
    proxy.delay(Duration::from_millis(40));
    let before = Instant::now();
    near.write_all(b"later").unwrap();
    take(&mut far, 5);
    assert!(before.elapsed() >= Duration::from_millis(40));
    proxy.delay(Duration::ZERO);
    proxy.rate(Some(1_000_000));
    let before = Instant::now();
    let writer = std::thread::spawn(move || near.write_all(&[0; 100_000]));
    take(&mut far, 100_000);
    writer.join().unwrap().unwrap();
    assert!(before.elapsed() >= Duration::from_millis(80));
}

#[test]
fn idle_connection_is_closed_and_a_spent_one_reset() {
    let (target, proxy) = scene(0);
    let (mut near, _far) = connect(&target, &proxy);
    proxy.close_idle(Some(Duration::from_millis(10)));
    assert_eq!(near.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(proxy.made().idle, 1);
    proxy.close_idle(None);
    proxy.reset_after(Some(1000));
    let (mut near, _far) = connect(&target, &proxy);
    near.write_all(&[0; 1000]).unwrap();
    assert_eq!(near.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.made().resets, 1);
}

#[test]
fn target_that_is_gone_is_a_reset_and_a_new_one_is_found() {
    let (target, proxy) = scene(0);
    drop(target);
    let mut near = TcpStream::connect(proxy.address()).unwrap();
    assert!(near.read(&mut [0; 1]).is_err());
    let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    proxy.retarget(target.local_addr().unwrap());
    let (mut near, mut far) = connect(&target, &proxy);
    near.write_all(b"x").unwrap();
    take(&mut far, 1);
}
