//! A ring whose members exchange blocks of three partitions with both neighbours.

mod alike;
mod dropped;
mod early;
mod many;
mod misuse;
mod several;
mod threads;

use crate::{Buffer, Edge, Form, Layout, Neighbourhood, Options, Partitioned, Topology};
use rdma_fabric::{Group, SessionFabric};

const FORMS: [Form; 4] = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu];

fn edge(member: usize, label: u32) -> Option<Edge> {
    Some(Edge { member, label })
}

/// Two blocks each way, and an edge to nobody.
fn ring(me: usize, n: usize) -> Topology {
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    Topology::of([edge(left, 1), None, edge(right, 0)].into(), [edge(left, 0), None, edge(right, 1)].into())
}

async fn neighbours<F: SessionFabric>(fabric: &F) -> crate::Result<Neighbourhood<F>> {
    let group = Group::world(fabric).await?;
    let topology = ring(group.me(), group.len());
    Neighbourhood::new(group, topology).await
}

/// Three blocks of `len` elements, contiguous or columns.
fn layouts(columns: bool, len: usize) -> Vec<Layout> {
    let block = |at: usize| match columns {
        true => Layout::vector::<u64>(at, len, 1, 3).unwrap(),
        false => Layout::contiguous::<u64>(at * len, len).unwrap(),
    };
    (0..3).map(block).collect()
}

/// Blocks of 3 elements on both sides of a ring.
async fn threes<F: SessionFabric>(
    hood: &mut Neighbourhood<F>,
    form: Form,
) -> crate::Result<(Buffer<F, u64>, Buffer<F, u64>, Partitioned<F>)> {
    let fabric = hood.group().fabric().clone();
    let (send, receive) = (Buffer::<F, u64>::new(&fabric, 9)?, Buffer::<F, u64>::new(&fabric, 9)?);
    let blocks = layouts(false, 3);
    let parts = hood.partitioned_init(&send, &blocks, &receive, &blocks, 3, &Options::form(form)).await?;
    Ok((send, receive, parts))
}
