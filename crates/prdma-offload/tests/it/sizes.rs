//! Lengths and positions at which arithmetic could wrap, on threads and in virtual time.

use crate::both;
use prdma_offload::{Buffer, Collectives, Layout, Options, Pipeline, PrdmaError};
use rdma_fabric::{Fabric, FabricError, Group, Pod, ProgramResult};

const ELEMENTS: usize = 64;
const TOO_MANY: [usize; 8] = [
    usize::MAX,
    usize::MAX - 1,
    usize::MAX - 6,
    usize::MAX - 7,
    usize::MAX / 8 + 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    1 << 56,
];

fn is_refused<T: Pod>(fabric: &Fabric, len: usize) {
    for made in [Buffer::<T>::new(fabric, len), Buffer::<T>::in_place(fabric, len)] {
        match made {
            Err(PrdmaError::Fabric(FabricError::OutOfMemory(refused))) => {
                assert!(refused.requested > refused.available, "{refused}");
            }
            other => panic!("{len} elements of {} bytes: {other:?}", size_of::<T>()),
        }
    }
}

fn is_outside<T>(got: Result<T, PrdmaError>) -> bool {
    match got {
        Err(PrdmaError::Fabric(FabricError::OutOfBounds(outside))) => outside.region_len == 8 * ELEMENTS as u64,
        _ => false,
    }
}

async fn buffers(fabric: Fabric) -> ProgramResult<()> {
    for len in TOO_MANY {
        is_refused::<u8>(&fabric, len);
        is_refused::<u16>(&fabric, len);
        is_refused::<u64>(&fabric, len);
        is_refused::<[u64; 3]>(&fabric, len);
    }
    for buffer in [Buffer::<u64>::new(&fabric, ELEMENTS)?, Buffer::<u64>::in_place(&fabric, ELEMENTS)?] {
        for many in TOO_MANY {
            assert!(is_outside(buffer.read(many, &mut [])) || many < ELEMENTS, "read nothing at {many}");
            assert!(is_outside(buffer.read(many, &mut [0])) && is_outside(buffer.write(many, &[0])), "at {many}");
            assert!(buffer.view(0..many).is_err() && buffer.view_mut(many - 1..many).is_err(), "{many}");
            assert!(buffer.rows(0, 1, &[(2, many)]).is_err() && buffer.rows(0, many, &[]).is_err(), "{many}");
            assert!(buffer.rows(0, 1, &[(many, 0), (many, 0)]).is_err(), "{many} times {many} rows");
            // The distance of one row has no meaning.
            let mut one = buffer.rows_mut(3, 1, &[(1, many)])?;
            one.row_mut(&[0])[0] = 7;
            drop(one);
            assert_eq!(buffer.view(3..4)?[0], 7);
            for layout in [Layout::contiguous::<u64>(many, many), Layout::vector::<u64>(0, many, 1, many)] {
                // A layout may be longer than any buffer, but must be countable.
                assert!(layout.is_err() || many <= usize::MAX / 8, "{layout:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn buffers_have_an_end() {
    both(2, &buffers);
}

async fn collectives(fabric: Fabric) -> ProgramResult<()> {
    let mut all = Collectives::new(Group::world(&fabric).await?).await?;
    let [send, receive] = [0, 1].map(|_| Buffer::<u64>::new(&fabric, ELEMENTS));
    let (send, receive, options) = (send?, receive?, Options::default());
    for many in TOO_MANY {
        let sent = all.broadcast_init(0, &send, 0, many, Pipeline::default(), &options).await;
        assert!(sent.is_err(), "a broadcast of {many}");
        let reduced = all.allreduce_init(&send, &receive, many, u64::wrapping_add, &options).await;
        assert!(reduced.is_err(), "an allreduce of {many}");
    }
    Ok(())
}

#[test]
fn collectives_have_a_longest_length() {
    both(2, &collectives);
}
