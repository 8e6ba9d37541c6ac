//! Refused requests, the members that refuse them and the errors, and normal operation afterwards.

use super::{
    FORMS,
    exchange::{Spec, all, neighbours, place, through},
    shapes::Shape,
};
use fabric_conformance::{ensure, ensure_eq};
use onesided::{
    ProgramResult,
    prdma::{Buffer, Form, Holder, Layout, LayoutError, Options, PrdmaError, Request, Side},
};
use rdma_fabric::Fabric;

/// Returns the error of making a request.
fn refused(made: Result<Request, PrdmaError>) -> ProgramResult<PrdmaError> {
    made.err().ok_or_else(|| "the request was made".into())
}

/// Member 1 of a ring gives impossible blocks.
pub(super) async fn blocks(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let wrong = me == 1;
    let mut hood = all(fabric, &Shape::ring(members)).await?;
    let options = Options::default();
    let (send, receive) = (Buffer::<u8>::new(fabric, 30)?, Buffer::<u8>::new(fabric, 30)?);
    let at = |start: usize, len: usize| Layout::contiguous::<u8>(start, len);
    let good = [at(0, 8)?, at(8, 8)?];

    let told = |error| if wrong { error } else { PrdmaError::ElsewhereFailed };
    let outside = PrdmaError::OutOfBounds { side: Side::Source, slot: 1, end: 31, len: 30 };
    let overlap = PrdmaError::Overlap { slot: 0, side: Side::Source, other: 1 };
    let twice = Layout::vector::<u8>(8, 2, 4, 3)?;
    let slots = PrdmaError::Slots { side: Side::Destination, given: 1, slots: 2 };
    for (sends, receives, error, what) in [
        (&good[..1], good, slots, "a block for each slot"),
        (&good, [at(0, 8)?, at(23, 8)?], outside, "blocks are inside their buffers"),
        (&good, [at(0, 8)?, at(7, 8)?], overlap, "blocks that are received share no bytes"),
        // This one has the right number of bytes.
        (&good, [at(0, 8)?, twice], LayoutError::OverlapsItself { run: 4 }.into(), "no byte is received twice"),
    ] {
        let (sends, receives) = if wrong { (sends, receives) } else { (&good[..], good) };
        let end = refused(hood.alltoallw_init(&send, sends, &receive, &receives, &options).await)?;
        ensure_eq!(end, told(error), "{what}");
    }

    let (sends, receives) = ([at(0, 8)?, at(0, 8)?], [at(8, 8)?, at(16, 8)?]);
    let of_me = if wrong { [at(2, 8)?, at(16, 8)?] } else { receives };
    let end = refused(hood.alltoallw_init(&send, &sends, &send, &of_me, &options).await)?;
    let overlap = PrdmaError::Overlap { slot: 0, side: Side::Destination, other: 0 };
    ensure_eq!(end, told(overlap), "nor with one that is sent; those that are sent may");

    let huge = [(usize::MAX, 1), (0, 8)];
    let ranges = [(0, 8), (8, 8)];
    let receives = if wrong { &huge } else { &ranges };
    let end = refused(hood.alltoallv_init(&send, &ranges, &receive, receives, &options).await)?;
    ensure_eq!(end, told(LayoutError::Overflow.into()), "an impossible block");

    let receives = if wrong { [at(0, 9)?, at(9, 8)?] } else { good };
    let end = refused(hood.alltoallw_init(&send, &good, &receive, &receives, &options).await)?;
    let size = |side, slot, member, mine, theirs| PrdmaError::Size { side, slot, member, mine, theirs };
    let want = match me {
        0 => size(Side::Destination, 1, 1, 8, 9),
        1 => size(Side::Source, 0, 0, 9, 8),
        _ => PrdmaError::ElsewhereFailed,
    };
    ensure_eq!(end, want, "both ends of an edge are of one size");

    // Blocks beyond a border do not count, at any location.
    let line = Shape::Grid { dims: vec![members], periodic: vec![false] };
    let mut open = all(fabric, &line).await?;
    let far = at(1000, 3)?;
    let ends = |blocks: [Layout; 2]| match me {
        0 => [far, blocks[1]],
        _ if me + 1 == members => [blocks[0], far],
        _ => blocks,
    };
    let mut request = open.alltoallw_init(&send, &ends(good), &receive, &ends(good), &options).await?;
    request.start().await?;
    request.wait().await?;
    open.group_mut().barrier().await?;

    let mut request = hood.alltoallw_init(&send, &good, &receive, &good, &options).await?;
    request.start().await?;
    request.wait().await?;
    Ok(hood.group_mut().barrier().await?)
}

/// Edges that only one end declares.
pub(super) async fn edges(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let unmatched = |side, slot, member| PrdmaError::Unmatched { side, slot, member };
    let none = || (vec![], vec![]);
    // For each graph: the sources and destinations of its members, and the member that receives the
    // specific error.
    let graphs = [
        ([(vec![], vec![1]), none(), none()], 0, unmatched(Side::Destination, 0, 1)),
        ([none(), (vec![0], vec![]), none()], 1, unmatched(Side::Source, 0, 0)),
        // The second edge of two is missing at the other end; all other edges are right.
        ([(vec![2], vec![1, 1]), (vec![0], vec![2]), (vec![1], vec![0])], 0, unmatched(Side::Destination, 1, 1)),
        ([(vec![2, 2], vec![1]), (vec![0], vec![2]), (vec![1], vec![0])], 0, unmatched(Side::Source, 1, 2)),
        // To itself.
        ([none(), none(), (vec![], vec![2])], 2, unmatched(Side::Destination, 0, 2)),
    ];
    for (lists, who, why) in graphs {
        let shape = Shape::Graph(lists.to_vec());
        let (sources, destinations) = shape.slots(me);
        let mut hood = all(fabric, &shape).await?;
        let buffer = Buffer::<u64>::new(fabric, 8)?;
        let blocks = |start: usize, many: usize| (start..start + many).map(|at| (at, 1)).collect::<Vec<_>>();
        let (sends, receives) = (blocks(0, destinations), blocks(4, sources));
        for form in [Form::Fast, Form::Cpu] {
            let made = hood.alltoallv_init(&buffer, &sends, &buffer, &receives, &Options::form(form)).await;
            let want = if me == who { why.clone() } else { PrdmaError::ElsewhereFailed };
            ensure_eq!(refused(made)?, want, "{shape:?}");
        }
        hood.group_mut().barrier().await?;
    }
    through(fabric, &Spec::new(Shape::ring(3), Form::Mrc), 2).await
}

/// Calls that a request's state forbids, and accesses to its blocks.
pub(super) async fn order(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    for form in FORMS {
        let mut hood = all(fabric, &Shape::ring(members)).await?;
        let buffer = Buffer::<u32>::new(fabric, 32)?;
        let column = |start: usize| Layout::vector::<u32>(start, 4, 1, 8);
        // In four rows of eight, columns 1 and 6 are sent, and 0 and 7 are received.
        let (sends, receives) = ([column(1)?, column(6)?], [column(0)?, column(7)?]);
        let mut request = hood.alltoallw_init(&buffer, &sends, &buffer, &receives, &Options::form(form)).await?;
        ensure!(request.test().await?, "{form}: it is inactive");
        request.wait().await?;
        for k in 1..4u32 {
            buffer.write(0, &[100 * me as u32 + k; 32])?;
            request.start().await?;
            let iteration = u64::from(k);
            ensure_eq!(request.start().await, Err(PrdmaError::Active { iteration }), "{form}: start of an active one");
            let in_use = |end: Result<(), PrdmaError>, want| match end {
                Err(PrdmaError::InUse { holder, .. }) => holder == want,
                _ => false,
            };
            let mut word = [0];
            for row in [0, 8, 16, 24] {
                ensure!(in_use(buffer.read(row, &mut word), Holder::Receiver), "{form}: a read of what comes");
                ensure!(in_use(buffer.write(row + 7, &[1]), Holder::Receiver), "{form}: a write to what comes");
                ensure!(in_use(buffer.write(row + 1, &[1]), Holder::Sender), "{form}: a write to what goes");
                buffer.read(row + 1, &mut word)?;
                ensure_eq!(word, [100 * me as u32 + k], "{form}: what goes can be read");
                buffer.read(row + 2, &mut [0; 4])?;
                buffer.write(row + 2, &[7; 4])?;
            }
            ensure!(in_use(buffer.to_vec().map(drop), Holder::Receiver), "{form}: a read of everything");
            ensure!(buffer.write(0, &[0; 32]).is_err(), "{form}: a write to everything");
            request.wait().await?;
            request.wait().await?;
            ensure!(request.test().await?, "{form}: it is inactive again");
            ensure_eq!(request.iterations(), iteration, "{form}");
            let got = buffer.to_vec()?;
            let (left, right) = neighbours(fabric);
            for row in 0..4 {
                let row = &got[8 * row..8 * row + 8];
                let (mine, from) = (100 * me as u32 + k, |member: usize| 100 * member as u32 + k);
                ensure_eq!(row, [from(left), mine, 7, 7, 7, 7, mine, from(right)], "{form}: a row of iteration {k}");
            }
        }
        // Memory beyond the elements can't be reached.
        let odd = Buffer::<u8>::new(fabric, 5)?;
        ensure!(odd.read(0, &mut [0; 6]).is_err() && odd.write(5, &[1]).is_err(), "a buffer of 5 has 5 elements");
        hood.group_mut().barrier().await?;
    }
    Ok(())
}
