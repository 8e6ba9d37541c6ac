//! The receiver's part of jobs with receives of any index that the sender matches.

use super::job::{Job, Member, OVERTAKEN, content};
use rdma_fabric::{ProgramResult, join::join};

impl Member<'_> {
    pub(super) async fn direct(&self, job: Job) -> ProgramResult<()> {
        match job {
            Job::DirectRow(messages) => self.direct_row(messages).await,
            Job::DirectTwice(indices) => self.direct_twice(indices).await,
            Job::DirectBeside => self.direct_beside().await,
            Job::DirectRace => self.direct_race().await,
            Job::DirectDropped => self.direct_dropped().await,
            other => unreachable!("{other:?} has no such receives"),
        }
    }

    async fn direct_row(&self, messages: usize) -> ProgramResult<()> {
        let buffer = self.buffer(0, self.words)?;
        for n in 0..messages {
            let received = self.world.irecv_any_index_direct(&buffer, 0).await?.wait().await?;
            self.check(received, &buffer, n, self.words)?;
            self.step(n);
        }
        Ok(())
    }

    async fn direct_twice(&self, indices: [usize; 2]) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        let first = self.world.irecv_any_index_direct(&buffers[0], 0).await?;
        let second = self.world.irecv_any_index_direct(&buffers[1], 0).await?;
        let (first, second) = join(first.wait(), second.wait()).await;
        let (first, second) = (first?, second?);
        // Messages of different indices may overtake each other.
        let overtaken = first.index != indices[0];
        self.probe.add(OVERTAKEN, u64::from(overtaken));
        self.check(first, &buffers[0], usize::from(overtaken), self.words)?;
        self.check(second, &buffers[1], usize::from(!overtaken), self.words)
    }

    /// The sender starts when both receives are posted, so each message has its own.
    async fn direct_beside(&self) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        let any = self.world.irecv_any_index_direct(&buffers[0], 0).await?;
        let named = self.world.irecv(&buffers[1], 0, 0).await?;
        self.send(0, (0, 1), 1).await?;
        let (any, named) = join(any.wait(), named.wait()).await;
        let (any, named) = (any?, named?);
        assert_eq!((any.index, named.index), (1, 0), "which message came where");
        self.check(named, &buffers[1], 0, self.words)?;
        self.check(any, &buffers[0], 1, self.words)
    }

    /// Either receive may take the first message; the other one takes the second.
    async fn direct_race(&self) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        let any = self.world.irecv_any_index_direct(&buffers[0], 0).await?;
        let named = self.world.irecv(&buffers[1], 0, 0).await?;
        // `any` may wait for the completion of `named`, which is polled first: the explorer ignores wakers,
        // so it does not poll again when one future of a task wakes another.
        let (named, any) = join(named.wait(), any.wait()).await;
        let (any, named) = (any?, named?);
        let mut word = [0];
        self.fabric.read(&buffers[0].slice(0..1)?, &mut word)?;
        let any_is_second = word[0] == content(0, 1);
        self.check(any, &buffers[0], usize::from(any_is_second), self.words)?;
        self.check(named, &buffers[1], usize::from(!any_is_second), self.words)
    }

    /// The first message is lost if it used the header of the dropped receive, and no other one.
    async fn direct_dropped(&self) -> ProgramResult<()> {
        let buffers = [self.buffer(0, self.words)?, self.buffer(1, self.words)?];
        drop(self.world.irecv_any_index_direct(&buffers[1], 0).await?);
        let mut came = [false; 3];
        while !came[1] || !came[2] {
            let received = self.world.irecv_any_index_direct(&buffers[0], 0).await?.wait().await?;
            let mut word = [0];
            self.fabric.read(&buffers[0].slice(0..1)?, &mut word)?;
            let n = (0..3).find(|n| word[0] == content(0, *n)).expect("what came");
            assert_eq!(received.index, n % 2, "what came");
            assert!(!came[n] && (n > 0 || !came[2]), "what came");
            came[n] = true;
        }
        Ok(())
    }
}
