//! The programs of the ranks of a job, one of which is killed.

use crate::dying::{Points, dying};
use checks::killed::die_after;
use fmpl::{Buffer, Communicator, Fmpl, FmplError, Op, Options, Received};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region,
    join::{Either, race},
};
use std::{cell::Cell, time::Duration};

/// The bytes of the messages, in turn: within one put, and in pieces.
const BYTES: [usize; 4] = [8, 200, 40_000, 0];
const LONGEST: usize = 40_000;

/// Plays one rank's part.
pub(crate) async fn play(fabric: Fabric, words: &[String]) -> ProgramResult<String> {
    let [scene, victim, when, number] = words else { return Err(format!("no such part: {words:?}").into()) };
    let (victim, number) = (Rank::new(victim.parse()?), number.parse()?);
    let is_victim = fabric.rank() == victim;
    let points = Points::endless();
    let spoiled = if is_victim && when == "call" { dying(&fabric, points.clone()) } else { fabric.clone() };
    let options = match scene.as_str() {
        "fetches" | "finalize" => Options::default().spool(200_000, Duration::ZERO),
        "fetches-late" => Options::default().spool(200_000, Duration::from_micros(50)),
        _ => Options::default(),
    };
    let fmpl = Fmpl::init_with(&spoiled, options).await?;
    let mut world = Group::world(&fabric).await?;
    let survivors = world.split((!is_victim).then_some(0), 0).await?;
    let stop = fabric.alloc_symmetric(8).await?;
    let begun = world.barrier().await;
    let comm = fmpl.world();
    let (buffer, next) = (comm.buffer(LONGEST)?, Cell::new([0, 1, 2]));
    let part = Part { comm, fabric: fabric.clone(), stop, victim: victim.index(), buffer, next };
    let Some(mut survivors) = survivors else {
        begun?;
        match when.as_str() {
            "call" => points.set(number),
            _ => die_after(Duration::from_micros(number)),
        }
        for n in 0.. {
            part.dies(scene, n).await?;
        }
        return Err("it lives on".into());
    };
    // The victim may die as soon as it has left the barrier: while others are still inside.
    let (mut done, mut n) = (begun.map_err(FmplError::from), 0);
    let may_stop = matches!(scene.as_str(), "sends-any-source" | "finalize");
    while done.is_ok() && !(may_stop && part.is_stopped()?) {
        done = part.lives(scene, n).await;
        n += 1;
    }
    // A survivor that gets the error sets the others' words until all of them are in the barrier.
    let mut _stop = None;
    if scene == "finalize" && done.is_ok() {
        _stop = Some(part.stop);
        drop(part.buffer);
        done = fmpl.finalize().await;
    } else {
        part.stop_others().await?;
    }
    survivors.barrier().await?;
    match done {
        Err(FmplError::Fabric(FabricError::PeerLost { rank })) if rank == victim => Ok("told".to_owned()),
        Ok(()) => Ok("stopped".to_owned()),
        other => Err(format!("not told: {other:?} in round {n}").into()),
    }
}

/// A rank in its part.
struct Part<'a> {
    comm: &'a Communicator,
    fabric: Fabric,
    /// A word of each rank, set by survivors that received the error.
    stop: Region,
    victim: usize,
    buffer: Buffer<u8>,
    /// The next message of each index, where the receives do not name it.
    next: Cell<[usize; 3]>,
}

/// Returns the contents of message `n` of a member.
fn content(from: usize, n: usize) -> Vec<u8> {
    (0..BYTES[n % BYTES.len()]).map(|at| (31 * from + 7 * n + at) as u8).collect()
}

impl Part<'_> {
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.comm.me();
        (0..self.comm.len()).filter(move |other| *other != me)
    }

    fn is_stopped(&self) -> ProgramResult<bool> {
        Ok(self.fabric.load::<u64>(&self.stop.word(&self.fabric, 0)?)? != 0)
    }

    /// Stops the ranks that do not wait for the victim themselves.
    async fn stop_others(&self) -> ProgramResult<()> {
        for other in self.others().filter(|other| *other != self.victim) {
            let word = self.fabric.remote_word::<u64>(self.stop.at(Rank::new(other as u32), 0))?;
            self.fabric.put_word(&word, 1).await?;
        }
        Ok(())
    }

    /// Awaits a call that may not depend on the victim, or until another survivor has received the
    /// error.
    async fn unless_stopped(&self, call: impl Future<Output = fmpl::Result<()>>) -> fmpl::Result<()> {
        let word = self.stop.word::<u64>(&self.fabric, 0)?;
        let alive = Deps::One(self.fabric.rank());
        match race(call, self.fabric.wait_until(&word, alive, |word| word != 0)).await {
            Either::First(done) => done,
            Either::Second(stopped) => Ok(stopped.map(drop)?),
        }
    }

    /// Checks that the received message is message `n` of its sender.
    fn check(&self, Received { from, bytes, .. }: Received, n: usize) -> fmpl::Result<()> {
        let mut found = vec![0; bytes];
        self.fabric.read(&self.buffer.slice(0..bytes)?, &mut found)?;
        assert!(found == content(from, n), "message {n} of member {from}");
        Ok(())
    }

    /// Makes one round of the rank that dies.
    async fn dies(&self, scene: &str, n: usize) -> fmpl::Result<()> {
        let (comm, me) = (self.comm, self.comm.me());
        match scene {
            "sends" | "sends-any-index" => {
                for to in self.others() {
                    comm.send(&content(me, n), to, n % 3).await?;
                }
            }
            "receives" | "receives-isend" | "fetches" | "fetches-late" => {
                for from in self.others() {
                    self.check(comm.recv(&self.buffer, from, n % 3).await?, n)?;
                }
            }
            "receives-any" => {
                comm.recv_any(&self.buffer, 0).await?;
            }
            "finalize" => std::future::pending().await,
            _ => self.lives(scene, n).await?,
        }
        Ok(())
    }

    /// Makes one round of a rank that survives.
    async fn lives(&self, scene: &str, n: usize) -> fmpl::Result<()> {
        let (comm, me, victim) = (self.comm, self.comm.me(), self.victim);
        match scene {
            "sends" => self.check(comm.irecv(&self.buffer, victim, n % 3).await?.wait().await?, n),
            "sends-any-index" => {
                let received = comm.irecv_any_index(&self.buffer, victim).await?.wait().await?;
                // Those of different indices may overtake each other.
                let mut next = self.next.get();
                next[received.index] += 3;
                self.check(received, self.next.replace(next)[received.index])
            }
            "sends-any-source" => {
                let server = usize::from(victim == 0);
                if me == server {
                    comm.recv_any(&self.buffer, 0).await.map(drop)
                } else if me == victim {
                    comm.send_any(&content(me, n), server, 0).await
                } else {
                    self.unless_stopped(comm.send_any(&content(me, n), server, 0)).await
                }
            }
            "receives" | "fetches" | "fetches-late" => comm.send(&content(me, n), victim, n % 3).await,
            "receives-any" => comm.send_any(&content(me, n), victim, 0).await,
            "receives-isend" => {
                self.fabric.write(&self.buffer.slice(0..BYTES[n % BYTES.len()])?, &content(me, n))?;
                comm.isend(&self.buffer.slice(0..BYTES[n % BYTES.len()])?, victim, n % 3).await?.wait().await
            }
            "finalize" if n < 4 => comm.send(&content(me, n), victim, n % 3).await,
            // Nothing is left to do but to end.
            "finalize" => self.stop_here().await,
            "barrier" => comm.barrier().await,
            "broadcast" => {
                let root = n % comm.len();
                let bytes = content(root, n);
                let span = self.buffer.slice(0..bytes.len())?;
                if me == root {
                    self.fabric.write(&span, &bytes)?;
                }
                comm.broadcast(&span, root).await?;
                self.check(Received { from: root, index: 0, bytes: bytes.len() }, n)
            }
            "reduce" | "allreduce" => {
                let (root, span) = (n % comm.len(), self.buffer.part_as::<i32>(0, 25)?);
                self.fabric.write(&*span, &[(me + n) as i32; 25])?;
                match scene {
                    "reduce" => comm.reduce(&*span, Op::Sum, root).await?,
                    _ => comm.allreduce(&*span, Op::Sum).await?,
                }
                let (mut sum, members) = ([0; 25], comm.len());
                self.fabric.read(&*span, &mut sum)?;
                if scene == "allreduce" || me == root {
                    assert_eq!(sum, [(members * (members - 1) / 2 + members * n) as i32; 25]);
                }
                Ok(())
            }
            _ => panic!("no such scene: {scene}"),
        }
    }

    /// Stops this rank's rounds.
    async fn stop_here(&self) -> fmpl::Result<()> {
        let word = self.fabric.remote_word::<u64>(self.stop.at(self.fabric.rank(), 0))?;
        Ok(self.fabric.put_word(&word, 1).await?)
    }
}
