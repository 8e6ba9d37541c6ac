//! Several threads of a rank.

use super::{neighbours, threes};
use crate::Form;
use tofu2_sim::shm::Threads;

/// Poll until it is over, on whatever thread.
fn drive<T>(future: impl core::future::Future<Output = T>) -> T {
    let mut future = core::pin::pin!(future);
    let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
    loop {
        match future.as_mut().poll(&mut cx) {
            core::task::Poll::Ready(done) => return done,
            core::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn threads_of_a_rank_mark_and_look() {
    fn shared<T: Send + Sync>(_: &T) {}
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        let run = Threads::new(2).run_with(|fabric| {
            drive(async {
                let mut hood = neighbours(&fabric).await?;
                let me = hood.group().me() as u64;
                let (send, receive, mut parts) = threes(&mut hood, form).await?;
                shared(&parts);
                for k in 1..=20 {
                    parts.start().await?;
                    std::thread::scope(|scope| {
                        for partition in 0..3 {
                            let (parts, send, receive) = (&parts, &send, &receive);
                            scope.spawn(move || {
                                for slot in [0, 2] {
                                    send.write(3 * slot + partition, &[k << 8 | me]).unwrap();
                                    drive(parts.ready(slot, partition)).unwrap();
                                }
                                for slot in [0, 2] {
                                    while !drive(parts.arrived(slot, partition)).unwrap() {
                                        std::thread::yield_now();
                                    }
                                    let mut got = [0];
                                    receive.read(3 * slot + partition, &mut got).unwrap();
                                    assert_eq!(got, [k << 8 | (1 - me)], "{form}: {partition} of {slot}");
                                }
                            });
                        }
                    });
                    parts.wait().await?;
                }
                hood.group_mut().barrier().await?;
                Ok(())
            })
        });
        run.unwrap();
    }
}
