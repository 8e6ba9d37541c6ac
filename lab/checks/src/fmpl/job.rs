//! The programs of the ranks.

use ::fmpl::{Communicator, Fmpl, Received};
use explore::Probe;
use rdma_fabric::{Fabric, LocalSpan, ProgramResult, Rank, Region, RemoteAddr, join::join};

/// The fact that counts messages that overtook another one.
pub(super) const OVERTAKEN: u32 = 101;
/// The number of receive buffers of each rank, which have the same location at every rank.
const BUFFERS: usize = 2;
/// The words of a receive buffer.
const WORDS: usize = 9;

/// The programs of the ranks. Messages go from rank 0 to rank 1, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// `messages` messages of `words` times [`Member::words`] words each, with one index.
    Row {
        messages: usize,
        words: usize,
    },
    /// The same, received into any memory, through a window of two words.
    Parts {
        messages: usize,
        words: usize,
    },
    /// A message, and another that is longer than any spool.
    Longer,
    /// Messages with two indices, whose receives are posted in the other order before both are
    /// waited for; this many times.
    Ahead(usize),
    /// A message each way, each sent while the other is received.
    Cross,
    /// A receive of any index, and one of index 0, while messages of both indices are sent.
    AnyBeside,
    /// Two receives of any index are posted; messages with these indices are sent.
    AnyTwice([usize; 2]),
    /// This many receives of any index, one after another, of messages with index 0.
    AnyRow(usize),
    /// This many receives of any index that the sender matches, one after another, of messages with
    /// index 0.
    DirectRow(usize),
    /// Two such receives are posted; messages with these indices are sent.
    DirectTwice([usize; 2]),
    /// Such a receive, and one of index 0; then messages of both indices are sent.
    DirectBeside,
    /// Such a receive, and one of index 0, while two messages of index 0 are sent.
    DirectRace,
    /// Such a receive, whose future is dropped, and another one, while three messages are sent.
    DirectDropped,
    /// All other ranks send this many messages to rank 0, which receives from any source.
    Source(usize),
    Barrier(usize),
    Broadcast(usize),
    Reduce(usize),
    Allreduce(usize),
}

impl Job {
    /// Returns the indices of the messages that rank 0 sends, in order.
    fn indices(self) -> Vec<usize> {
        match self {
            Job::Ahead(times) => [1, 0].repeat(times),
            Job::AnyBeside | Job::DirectBeside => vec![0, 1],
            Job::AnyTwice(indices) | Job::DirectTwice(indices) => indices.to_vec(),
            Job::AnyRow(messages) | Job::DirectRow(messages) => vec![0; messages],
            Job::DirectRace => vec![0, 0],
            Job::DirectDropped => vec![0, 1, 0],
            _ => Vec::new(),
        }
    }
}

/// One rank in a job.
pub(super) struct Member<'a> {
    pub(super) world: &'a Communicator,
    pub(super) fabric: Fabric,
    pub(super) probe: Probe,
    /// The words of a message, unless its job has others.
    pub(super) words: usize,
    memory: Region,
}

/// Returns the words of message `n` of a rank.
pub(super) fn content(from: usize, n: usize) -> u64 {
    (100 * from + n + 1) as u64
}

impl<'a> Member<'a> {
    pub(super) async fn new(fabric: &Fabric, fmpl: &'a Fmpl, probe: Probe, words: usize) -> ProgramResult<Self> {
        let memory = fabric.alloc_symmetric(BUFFERS * WORDS * 8).await?;
        Ok(Member { world: fmpl.world(), fabric: fabric.clone(), probe, words, memory })
    }

    /// Returns the address at which rank 1 receives.
    pub(super) fn target(&self) -> RemoteAddr {
        self.memory.at(Rank::new(1), 0)
    }

    /// Synchronises all members.
    pub(super) async fn meet(&self) -> ProgramResult<()> {
        for root in 0..self.world.len() {
            self.world.broadcast(&self.buffer(0, 1)?, root).await?;
        }
        Ok(self.world.barrier().await?)
    }

    pub(super) fn buffer(&self, number: usize, words: usize) -> ProgramResult<LocalSpan<u64>> {
        Ok(self.memory.span(&self.fabric, number * WORDS * 8, words)?)
    }

    pub(super) fn read(&self, buffer: &LocalSpan<u64>, bytes: usize) -> ProgramResult<Vec<u64>> {
        let mut words = vec![0; bytes / 8];
        self.fabric.read(&buffer.slice(0..bytes / 8)?, &mut words)?;
        Ok(words)
    }

    /// Checks that the received message is message `n` of its sender.
    pub(super) fn check(
        &self,
        received: Received,
        buffer: &LocalSpan<u64>,
        n: usize,
        words: usize,
    ) -> ProgramResult<()> {
        assert_eq!(received.bytes, 8 * words, "how much came");
        assert_eq!(self.read(buffer, 8 * words)?, vec![content(received.from, n); words], "what came");
        Ok(())
    }

    pub(super) async fn send(&self, to: usize, (n, words): (usize, usize), index: usize) -> ProgramResult<()> {
        Ok(self.world.send(&vec![content(self.world.me(), n); words], to, index).await?)
    }

    /// Posts a receive of these words in a buffer, and waits for message `n` of a rank.
    async fn receive(&self, (from, n): (usize, usize), words: usize, index: usize) -> ProgramResult<()> {
        let buffer = self.buffer(0, words)?;
        let received = self.world.recv(&buffer, from, index).await?;
        self.check(received, &buffer, n, words)
    }

    /// Receives message `n` of rank 0 into memory of the program.
    async fn receive_in_parts(&self, n: usize, words: usize) -> ProgramResult<()> {
        let mut came = vec![0u64; words];
        let received = self.world.recv_into(&mut came.as_mut_slice(), 0, 0).await?;
        assert_eq!(received.bytes, 8 * words, "how much came");
        // Each part has different words.
        let sent: Vec<u64> = (0..words).map(|word| content(0, n) + 1000 * word as u64).collect();
        assert_eq!(came, sent, "what came");
        Ok(())
    }

    pub(super) async fn run(&self, job: Job) -> ProgramResult<()> {
        let me = self.world.me();
        match job {
            Job::Row { messages, words } => {
                let words = words * self.words;
                for n in 0..messages {
                    if me == 0 {
                        self.send(1, (n, words), 0).await?;
                    } else {
                        self.receive((0, n), words, 0).await?;
                    }
                    self.step(n);
                }
                Ok(())
            }
            Job::Parts { messages, words } => {
                for n in 0..messages {
                    if me == 0 {
                        let sent: Vec<u64> = (0..words).map(|word| content(0, n) + 1000 * word as u64).collect();
                        self.world.send(&sent, 1, 0).await?;
                    } else {
                        self.receive_in_parts(n, words).await?;
                    }
                    self.step(n);
                }
                Ok(())
            }
            Job::Longer if me == 0 => {
                self.send(1, (0, self.words), 0).await?;
                self.step(0);
                self.send(1, (1, WORDS), 0).await
            }
            Job::Longer => {
                self.receive((0, 0), self.words, 0).await?;
                self.step(0);
                self.receive((0, 1), WORDS, 0).await
            }
            Job::Cross => self.cross(1 - me).await,
            Job::Source(messages) if me > 0 => {
                for n in 0..messages {
                    self.world.send_any(&vec![content(me, n); self.words], 0, 0).await?;
                    self.step(n);
                }
                Ok(())
            }
            Job::Source(messages) => self.serve(messages).await,
            Job::Barrier(times) => self.barriers(times).await,
            Job::Broadcast(times) => self.broadcasts(times).await,
            Job::Reduce(times) | Job::Allreduce(times) => self.sums(times, job == Job::Allreduce(times)).await,
            _ if me == 0 => {
                if job == Job::DirectBeside {
                    // Only its arrival counts.
                    self.world.recv(&self.buffer(0, 1)?, 1, 1).await?;
                }
                for (n, index) in job.indices().into_iter().enumerate() {
                    self.send(1, (n, self.words), index).await?;
                    self.step(n);
                }
                Ok(())
            }
            Job::Ahead(times) => self.ahead(times).await,
            Job::AnyBeside => self.any_beside().await,
            Job::AnyTwice(indices) => self.any_twice(indices).await,
            Job::AnyRow(messages) => self.any_row(messages).await,
            _ => self.direct(job).await,
        }
    }

    /// Ends a step in which message `n` was sent or received: the continuation depends on nothing
    /// else in the rank's history, unless a send is in progress.
    pub(super) fn step(&self, n: usize) {
        let state = format!("{:?}", self.world);
        if state.contains("pending: 0") {
            self.probe.step((n, state, self.probe.stored()));
        }
    }

    async fn cross(&self, other: usize) -> ProgramResult<()> {
        let own = self.buffer(1, 1)?;
        self.fabric.write(&own, &[content(self.world.me(), 0)])?;
        let sending = self.world.isend(&own, other, 0).await?;
        self.receive((other, 0), 1, 0).await?;
        Ok(sending.wait().await?)
    }

    /// Two indices at the same time: the second is sent first.
    async fn ahead(&self, times: usize) -> ProgramResult<()> {
        let buffers = [self.buffer(0, 1)?, self.buffer(1, 1)?];
        for time in 0..times {
            let first = self.world.irecv(&buffers[0], 0, 0).await?;
            let second = self.world.irecv(&buffers[1], 0, 1).await?;
            self.check(first.wait().await?, &buffers[0], 2 * time + 1, 1)?;
            self.check(second.wait().await?, &buffers[1], 2 * time, 1)?;
            self.step(time);
        }
        Ok(())
    }

    async fn any_beside(&self) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        let any = self.world.irecv_any_index(&buffers[0], 0).await?;
        let named = self.world.irecv(&buffers[1], 0, 0).await?;
        let (any, named) = join(any.wait(), named.wait()).await;
        // The message with index 0 arrives at its own receive, no matter which receive was posted
        // first.
        let (any, named) = (any?, named?);
        assert_eq!((any.index, named.index), (1, 0), "which message came where");
        self.check(named, &buffers[1], 0, self.words)?;
        self.check(any, &buffers[0], 1, self.words)
    }

    async fn any_twice(&self, indices: [usize; 2]) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        let first = self.world.irecv_any_index(&buffers[0], 0).await?;
        let second = self.world.irecv_any_index(&buffers[1], 0).await?;
        let (first, second) = (first.wait().await?, second.wait().await?);
        // Messages of different indices may overtake each other.
        let overtaken = first.index != indices[0];
        self.probe.add(OVERTAKEN, u64::from(overtaken));
        self.check(first, &buffers[0], usize::from(overtaken), self.words)?;
        self.check(second, &buffers[1], usize::from(!overtaken), self.words)
    }

    async fn any_row(&self, messages: usize) -> ProgramResult<()> {
        let buffer = self.buffer(0, self.words)?;
        for n in 0..messages {
            let received = self.world.irecv_any_index(&buffer, 0).await?.wait().await?;
            self.check(received, &buffer, n, self.words)?;
            self.step(n);
        }
        Ok(())
    }

    /// Receives `messages` messages of each other rank.
    async fn serve(&self, messages: usize) -> ProgramResult<()> {
        let mut heard = vec![0; self.world.len()];
        let buffer = self.buffer(0, self.words)?;
        for _ in 0..messages * (self.world.len() - 1) {
            let received = self.world.recv_any(&buffer, 0).await?;
            self.check(received, &buffer, heard[received.from], self.words)?;
            heard[received.from] += 1;
            self.probe.step((heard.clone(), format!("{:?}", self.world), self.probe.stored()));
        }
        assert!(heard[1..].iter().all(|heard| *heard == messages), "whose messages came");
        Ok(())
    }
}
