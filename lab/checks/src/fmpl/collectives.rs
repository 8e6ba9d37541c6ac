//! The ranks' part of jobs with collectives.

use super::job::{Member, content};
use rdma_fabric::ProgramResult;

/// The fact that counts the ranks that have arrived at a barrier.
const CAME: u32 = 102;

impl Member<'_> {
    /// No rank leaves before all have arrived.
    pub(super) async fn barriers(&self, times: usize) -> ProgramResult<()> {
        for time in 1..=times {
            self.probe.add(CAME, 1);
            self.world.barrier().await?;
            assert!(self.probe.get(CAME) >= (time * self.world.len()) as u64, "somebody left a barrier early");
            self.step(time);
        }
        Ok(())
    }

    pub(super) async fn broadcasts(&self, times: usize) -> ProgramResult<()> {
        let span = self.buffer(0, 1)?;
        for time in 0..times {
            let root = time % self.world.len();
            if self.world.me() == root {
                self.fabric.write(&span, &[content(root, time)])?;
            }
            self.world.broadcast(&span, root).await?;
            assert_eq!(self.read(&span, 8)?, [content(root, time)], "what came");
            self.step(time);
        }
        Ok(())
    }

    pub(super) async fn sums(&self, times: usize, all: bool) -> ProgramResult<()> {
        let (span, members) = (self.buffer(0, 1)?, self.world.len());
        for time in 0..times {
            let root = if all { 0 } else { time % members };
            self.fabric.write(&span, &[content(self.world.me(), time)])?;
            let add = |mine: &mut [u64], theirs: &[u64]| mine[0] += theirs[0];
            if all {
                self.world.allreduce_with(&span, add).await?;
            } else {
                self.world.reduce_with(&span, add, root).await?;
            }
            if all || self.world.me() == root {
                let sum: u64 = (0..members).map(|member| content(member, time)).sum();
                assert_eq!(self.read(&span, 8)?, [sum], "what came");
            }
            self.step(time);
        }
        Ok(())
    }
}
