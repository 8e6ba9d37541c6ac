//! A ring whose members exchange blocks of three partitions with both neighbours.

mod alike;
mod dropped;
mod early;
mod many;
mod misuse;
mod several;
mod threads;

use crate::{Buffer, Form, Layout, Neighbourhood, Options, Partitioned, test_ring::neighbours};

const FORMS: [Form; 4] = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu];

/// Three blocks of `len` elements, contiguous or columns.
fn layouts(columns: bool, len: usize) -> Vec<Layout> {
    let block = |at: usize| match columns {
        true => Layout::vector::<u64>(at, len, 1, 3).unwrap(),
        false => Layout::contiguous::<u64>(at * len, len).unwrap(),
    };
    (0..3).map(block).collect()
}

/// Blocks of 3 elements on both sides of a ring.
async fn threes(hood: &mut Neighbourhood, form: Form) -> crate::Result<(Buffer<u64>, Buffer<u64>, Partitioned)> {
    let fabric = hood.group().fabric().clone();
    let (send, receive) = (Buffer::<u64>::new(&fabric, 9)?, Buffer::<u64>::new(&fabric, 9)?);
    let blocks = layouts(false, 3);
    let parts = hood.partitioned_init(&send, &blocks, &receive, &blocks, 3, &Options::form(form)).await?;
    Ok((send, receive, parts))
}
