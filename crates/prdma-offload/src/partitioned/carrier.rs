//! Who carries partitions.

use crate::{
    Result,
    engine::{CpuParts, Engine, Progress, QueueParts},
};

pub(super) enum Carrier {
    Queues(QueueParts),
    Cpu(CpuParts),
}

impl Engine for Carrier {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        match self {
            Carrier::Queues(parts) => parts.engine.start(iteration).await,
            Carrier::Cpu(parts) => parts.start(iteration).await,
        }
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        match self {
            Carrier::Queues(parts) => parts.engine.wait(iteration).await,
            Carrier::Cpu(parts) => parts.wait(iteration).await,
        }
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        match self {
            Carrier::Queues(parts) => parts.engine.test(iteration).await,
            Carrier::Cpu(parts) => parts.test(iteration).await,
        }
    }
}
