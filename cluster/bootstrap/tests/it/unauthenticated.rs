//! Unauthenticated connections: they are closed and do not affect the job.

use crate::team::{LONG, answer, at_once, coordinator, hello, join, join_all, plan};
use bootstrap::{Error, Secret};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

#[test]
fn a_wrong_secret_is_reported_and_disturbs_no_other() {
    let (coordinator, secret) = coordinator(plan(2));
    let error = join(coordinator.address(), &Secret::random().unwrap(), hello(0, 2), answer(0)).err().unwrap();
    assert!(matches!(error, Error::WrongSecret { .. }), "{error}");
    let hellos = (0..2).map(|rank| hello(rank, 2)).collect();
    join_all(coordinator.address(), &secret, hellos).into_iter().for_each(|joined| drop(joined.unwrap()));
}

#[test]
fn garbage_silence_and_many_connections_are_dropped() {
    let (coordinator, secret) = coordinator(plan(2));
    let address = coordinator.address();
    let connect = || TcpStream::connect(address).unwrap();
    let begun = Instant::now();
    let silent: Vec<_> = (0..300).map(|_| connect()).collect();
    for length in [1, 27, 28, 44, 1000, 100_000] {
        // The other side may close the connection before the write.
        let _ = connect().write_all(&vec![0x5a; length]);
    }
    // A correct greeting, then a wrong proof and a huge length.
    let mut greeting = b"onesided\x02\0\0\0".to_vec();
    greeting.extend_from_slice(&[0; 16]);
    let mut other = connect();
    other.write_all(&greeting).unwrap();
    other.write_all(&[0xff; 64]).unwrap();
    let hellos = (0..2).map(|rank| hello(rank, 2)).collect();
    let team: Vec<_> = join_all(address, &secret, hellos).into_iter().map(Result::unwrap).collect();
    println!("joined after {:?}, among 300 silent connections", begun.elapsed());
    at_once(&team, |_, session| session.exchange(b"", LONG).unwrap());
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A connection that has not been accepted yet may end with a reset.
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_secs(20), "silent connections stayed for {elapsed:?}");
    let mut all = Vec::new();
    other.set_read_timeout(Some(LONG)).unwrap();
    let _ = other.read_to_end(&mut all);
    assert!(all.len() <= 44, "nothing but an answer to the greeting");
    at_once(&team, |_, session| session.exchange(b"", LONG).unwrap());
}

#[test]
fn another_version_is_reported() {
    let listener = std::net::TcpListener::bind(crate::team::ANYWHERE).unwrap();
    let address = listener.local_addr().unwrap();
    let serve = std::thread::spawn(move || {
        for bytes in [&b"onesided\x09\0\0\0"[..], b"HTTP/1.1 400 Bad Request\r\n"] {
            let mut stream = listener.accept().unwrap().0;
            let mut answer = bytes.to_vec();
            answer.resize(44, 0);
            stream.write_all(&answer).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let secret = Secret::random().unwrap();
    let error = join(address, &secret, hello(0, 1), answer(0)).err().unwrap();
    assert!(matches!(error, Error::Version { theirs: 9, ours: 2, .. }), "{error}");
    let error = join(address, &secret, hello(0, 1), answer(0)).err().unwrap();
    assert!(matches!(error, Error::NotACoordinator { .. }), "{error}");
    serve.join().unwrap();
}
