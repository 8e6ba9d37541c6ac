//! Messages from and into any memory, in one part or several.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Communicator, Fmpl, FmplError, Options, Sink, Source};
use rdma_fabric::{Fabric, Group, LocalSpan, ProgramResult};
use std::{pin::pin, time::Duration};

/// A message whose chunks have at most `most` bytes.
struct Chunks<B> {
    bytes: B,
    most: usize,
    filled: usize,
}

impl<B> Chunks<B> {
    fn new(bytes: B, most: usize) -> Self {
        Chunks { bytes, most, filled: 0 }
    }
}

impl Source for Chunks<Vec<u8>> {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&mut self, at: usize, most: usize) -> &[u8] {
        &self.bytes[at..self.bytes.len().min(at + most.min(self.most))]
    }
}

impl Sink for Chunks<Vec<u8>> {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8] {
        assert_eq!(at, self.filled, "chunks come in order");
        let end = self.bytes.len().min(at + most.min(self.most));
        &mut self.bytes[at..end]
    }

    fn filled(&mut self, at: usize, len: usize) {
        assert_eq!(at, self.filled);
        self.filled += len;
    }
}

/// A message in memory of the fabric.
struct Whole(LocalSpan<u8>);

impl Source for Whole {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn chunk(&mut self, _: usize, _: usize) -> &[u8] {
        unreachable!("a message that is in one piece")
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        Some(&self.0)
    }
}

impl Sink for Whole {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn chunk(&mut self, _: usize, _: usize) -> &mut [u8] {
        unreachable!("a message that goes to one piece")
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        Some(&self.0)
    }
}

const LENGTHS: [usize; 12] = [0, 1, 8, 63, 64, 65, 128, 129, 192, 1000, 4097, 20_000];

/// Windows of 64 bytes, so that most messages come in parts.
fn options() -> Options {
    Options::default().window(64)
}

async fn pause(fabric: &Fabric, wanted: bool) {
    if wanted {
        fabric.sleep(Duration::from_micros(40)).await;
    }
}

/// Exchanges messages of all lengths; either side may call first.
async fn exchange(fabric: &Fabric, options: Options) -> ProgramResult<()> {
    let fmpl = Fmpl::init_with(fabric, options).await?;
    let world = fmpl.world();
    for (round, bytes) in (0..4).flat_map(|round| LENGTHS.map(|bytes| (round, bytes))) {
        let message = pattern(round, bytes);
        if world.me() == 0 {
            pause(fabric, round % 2 == 0).await;
            match round {
                0 => world.send(&message, 1, 0).await?,
                1 => world.send_from(&mut &*message, 1, 0).await?,
                _ => world.send_from(&mut Chunks::new(message, 7 * round * round), 1, 0).await?,
            }
        } else {
            pause(fabric, round % 2 == 1).await;
            let mut sink = Chunks::new(vec![0; bytes], [1 << 20, 13, 5, 100][round]);
            let received = world.recv_into(&mut sink, 0, 0).await?;
            assert_eq!((received.from, received.index, received.bytes, sink.filled), (0, 0, bytes, bytes));
            assert!(sink.bytes == message, "{bytes} bytes in round {round}");
        }
    }
    Ok(fmpl.finalize().await?)
}

#[test]
fn messages_of_all_lengths_come_whole() {
    everywhere(2, &async |fabric: Fabric| exchange(&fabric, options()).await);
}

#[test]
fn messages_that_come_too_early_wait_in_a_spool_that_grows() {
    everywhere(2, &async |fabric: Fabric| {
        exchange(&fabric, options().spool(0, Duration::ZERO).growing(Duration::ZERO)).await
    });
    everywhere(2, &async |fabric: Fabric| {
        exchange(&fabric, options().spool(64, Duration::ZERO).growing(Duration::ZERO)).await
    });
}

#[test]
fn a_spool_that_grows_takes_all_that_is_sent_first() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options().spool(0, Duration::ZERO).growing(Duration::ZERO)).await?;
        let world = fmpl.world();
        let other = 1 - world.me();
        for n in 0..20 {
            world.send(&pattern(n + world.me(), 30_000 + n), other, n % 2).await?;
        }
        for n in 0..20 {
            let mut into = vec![0; 30_020];
            let bytes = world.recv_into(&mut &mut *into, other, n % 2).await?.bytes;
            assert!(into[..bytes] == pattern(n + other, 30_000 + n));
        }
        while world.check_spool().await?.waiting > 0 {
            fabric.sleep(Duration::from_micros(50)).await;
        }
        world.trim_spool()?;
        Ok(fmpl.finalize().await?)
    });
}

/// Sends in parts match receives in one piece, and vice versa.
#[test]
fn each_way_to_send_meets_each_way_to_receive() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options().spool(1 << 16, Duration::from_micros(30))).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(500)?;
        for (n, bytes) in [500, 40, 64, 0, 200].into_iter().enumerate() {
            let message = pattern(n, bytes);
            for turn in 0..9 {
                if world.me() == 0 {
                    pause(&fabric, turn % 2 == 0).await;
                    match turn / 3 {
                        0 => world.send(&message, 1, 1).await?,
                        1 => world.send_from(&mut Chunks::new(message.clone(), 33), 1, 1).await?,
                        _ => {
                            let span = buffer.slice(0..bytes)?;
                            fabric.write(&span, &message)?;
                            world.send_from(&mut Whole(span), 1, 1).await?;
                        }
                    }
                } else {
                    pause(&fabric, turn % 2 == 1).await;
                    let got = match turn % 3 {
                        0 => {
                            let bytes = world.recv(&buffer, 0, 1).await?.bytes;
                            read(world, &buffer, bytes)?
                        }
                        1 => {
                            let mut sink = Chunks::new(vec![0; bytes], 21);
                            world.recv_into(&mut sink, 0, 1).await?;
                            sink.bytes
                        }
                        _ => {
                            let bytes = world.recv_into(&mut Whole(LocalSpan::clone(&buffer)), 0, 1).await?.bytes;
                            read(world, &buffer, bytes)?
                        }
                    };
                    assert!(got == message, "{bytes} bytes in turn {turn}");
                }
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_message_too_long_is_refused_and_the_next_one_is_not() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options()).await?;
        let world = fmpl.world();
        for bytes in [65, 129, 1000] {
            if world.me() == 0 {
                world.send(&pattern(0, bytes), 1, 0).await?;
                world.send(&pattern(1, bytes - 1), 1, 0).await?;
            } else {
                let mut into = vec![0; bytes - 1];
                let refused = world.recv_into(&mut &mut *into, 0, 0).await;
                assert_eq!(refused, Err(FmplError::TooLong { from: 0, to: 1, index: 0, bytes, room: bytes - 1 }));
                assert_eq!(world.recv_into(&mut &mut *into, 0, 0).await?.bytes, bytes - 1);
                assert!(into == pattern(1, bytes - 1));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

async fn receive_all(world: &Communicator, bytes: usize) -> fmpl::Result<Vec<u8>> {
    let mut into = vec![0; bytes];
    world.recv_into(&mut &mut *into, 0, 0).await.map(|_| into)
}

#[test]
fn a_receive_that_is_dropped_loses_its_message_and_no_other() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options()).await?;
        let world = fmpl.world();
        for bytes in [10, 64, 300] {
            if world.me() == 0 {
                world.recv_into(&mut Chunks::new(vec![0; 1], 1), 1, 1).await?;
                world.send(&pattern(0, bytes), 1, 0).await?;
                world.send(&pattern(1, bytes), 1, 0).await?;
            } else {
                let at = fabric.now() + Duration::from_millis(3);
                assert!(fabric.before(at, receive_all(world, bytes)).await.is_none(), "nothing was sent");
                world.send(&[0u8], 0, 1).await?;
                assert!(receive_all(world, bytes).await? == pattern(1, bytes), "{bytes} bytes");
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// A receiver that has the first part of a message receives an error if the others will not arrive.
#[test]
fn a_send_that_is_dropped_in_the_middle_cuts_its_message() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options()).await?;
        let world = fmpl.world();
        let mut both = Group::world(&fabric).await?;
        if world.me() == 0 {
            both.barrier().await?;
            // The first part is sent; it is not taken, so there is no header for the second one.
            let message = pattern(0, 1000);
            let sent = fabric.before(fabric.now() + Duration::from_millis(1), world.send(&message, 1, 0)).await;
            assert!(sent.is_none(), "nobody has taken the first part");
            both.barrier().await?;
            world.send(&pattern(1, 1000), 1, 0).await?;
        } else {
            let mut into = vec![0; 1000];
            {
                let mut sink = &mut *into;
                let mut received = pin!(world.recv_into(&mut sink, 0, 0));
                // The header is posted; then the wait is abandoned.
                let posted = fabric.before(fabric.now() + Duration::from_millis(1), received.as_mut()).await;
                assert!(posted.is_none());
                both.barrier().await?;
                both.barrier().await?;
                assert_eq!(received.await, Err(FmplError::Cut { from: 0, index: 0, missing: 1000 - 64 }));
            }
            assert!(receive_all(world, 1000).await? == pattern(1, 1000));
        }
        Ok(fmpl.finalize().await?)
    });
}
