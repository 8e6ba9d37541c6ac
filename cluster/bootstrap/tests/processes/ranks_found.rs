//! A process that finds its job by its environment. It prints the address of the coordinator and
//! the outcome.

use crate::{
    job::LONG_LEASE,
    part::{LONG, hello, print_and_answer},
};
use bootstrap::{How, Interface, Session, detect, rendezvous};
use std::{env, thread::sleep, time::Duration};

/// Runs `WHAT [INTERFACE]`: joins and exchanges, then leaves (`leave`) or stays (`stay`); or
/// ends without having joined (`go`).
pub(crate) fn play(words: &[String]) {
    if let Err(error) = run(words) {
        println!("error {error}");
    }
}

fn run(words: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let found = detect(&|name| env::var_os(name))?.ok_or("no launcher")?;
    let named = words.get(1).map_or("lo", String::as_str);
    let how = How {
        lease: LONG_LEASE,
        join_within: Duration::from_secs(5),
        segment: vec![7, 8],
        interface: Some(Interface::Named(named.into())),
        ..How::default()
    };
    let job = rendezvous(&found, &how)?;
    println!("coordinator {}", job.address);
    if words[0] == "go" {
        return Ok(());
    }
    let hello = hello(job.rank, job.ranks, "a");
    let session = Session::join(job.address, &job.secret, hello, LONG, print_and_answer(job.rank, 0))?;
    let items = session.exchange(&[job.rank as u8], LONG)?;
    println!("exchanged {items:?} segment {:?}", session.welcome().segment);
    if words[0] == "leave" {
        session.left()?;
        session.wait_all_ended(LONG)?;
        println!("all ended");
    } else {
        sleep(LONG);
    }
    Ok(())
}
