//! Single messages, sent and received point to point.

use super::{
    FORMS,
    exchange::{busy, neighbours, place},
};
use fabric_conformance::ensure_eq;
use onesided::{
    Group, ProgramResult,
    prdma::{Buffer, Form, Layout, Options, Point, PrdmaError, Request, Side, points_init},
};
use rdma_fabric::Fabric;
use std::time::Duration;

/// The number of elements in a message.
const LEN: usize = 6;

fn block(number: usize) -> ProgramResult<Layout> {
    Ok(Layout::contiguous::<u32>(number * LEN, LEN)?)
}

/// Sends three messages to the right, two of them with the same tag, and one to itself; they are
/// started and waited for in different orders.
pub(super) async fn points(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let (left, right) = neighbours(fabric);
    for form in FORMS {
        let mut world = Group::world(fabric).await?;
        let (send, receive) = (Buffer::<u32>::new(fabric, 4 * LEN)?, Buffer::<u32>::new(fabric, 8 * LEN)?);
        let to = [(right, 5), (right, 5), (right, 1), (me, 2)];
        // The k-th send with a tag matches the k-th receive.
        let from = [(left, 1, 2), (me, 2, 3), (left, 5, 0), (left, 5, 1)];
        let mut sends = Vec::new();
        for (number, (member, tag)) in to.into_iter().enumerate() {
            sends.push(Point::new(member, tag, &send, block(number)?));
        }
        let mut receives = Vec::new();
        for (number, (member, tag, _)) in from.into_iter().enumerate() {
            let column = Layout::vector::<u32>(number, LEN, 1, 4)?;
            receives.push(Point::new(member, tag, &receive, column));
        }
        let (mut sends, mut receives) = points_init(&mut world, sends, receives, &Options::form(form)).await?;
        ensure_eq!((sends.len(), receives.len()), (4, 4), "a request for each");
        for k in 0..8 {
            let value = |member: usize, number: usize, at: usize| (k * 1000 + member * 100 + number * 10 + at) as u32;
            let all: Vec<u32> = (0..4 * LEN).map(|at| value(me, at / LEN, at % LEN)).collect();
            send.write(0, &all)?;
            let order = |number: usize| (number + k + me) % 4;
            for number in 0..4 {
                if (k + number) % 2 == 0 {
                    sends[order(number)].start().await?;
                    receives[order(number + 1)].start().await?;
                } else {
                    receives[order(number + 1)].start().await?;
                    sends[order(number)].start().await?;
                }
            }
            let mut requests: Vec<&mut Request> = sends.iter_mut().chain(&mut receives).collect();
            requests.rotate_left(3 * k % 8);
            for request in requests {
                request.wait().await?;
            }
            let got = receive.to_vec()?;
            for (number, (member, _, sent)) in from.into_iter().enumerate() {
                let got: Vec<u32> = (0..LEN).map(|at| got[4 * at + number]).collect();
                let want: Vec<u32> = (0..LEN).map(|at| value(member, sent, at)).collect();
                ensure_eq!(got, want, "{form}: receive {number} of member {me}, iteration {k}");
            }
        }
        world.barrier().await?;
    }
    Ok(())
}

/// A receiver is ready long before the data, or long after.
pub(super) async fn early_and_late(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        let mut world = Group::world(fabric).await?;
        let buffer = Buffer::<u32>::new(fabric, LEN)?;
        let point = Point::new(1 - me, 7, &buffer, block(0)?);
        let (sends, receives) = if me == 0 { (vec![point], vec![]) } else { (vec![], vec![point]) };
        let (mut sends, mut receives) = points_init(&mut world, sends, receives, &Options::form(form)).await?;
        let request = sends.first_mut().or(receives.first_mut()).ok_or("one was asked for")?;
        for k in 0..8u32 {
            if me == 0 {
                buffer.write(0, &[k; LEN])?;
            }
            let waits = usize::from(k % 2 == 0);
            if me == waits {
                busy(fabric, Duration::from_micros(300)).await;
            }
            // A start does not wait for other members.
            request.start().await?;
            request.wait().await?;
            ensure_eq!(buffer.to_vec()?, [k; LEN], "{form}: member {me}, iteration {k}");
        }
        world.barrier().await?;
    }
    Ok(())
}

/// Checks a receive without a sender, and one of another size.
pub(super) async fn wrong(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let mut world = Group::world(fabric).await?;
    let buffer = Buffer::<u32>::new(fabric, LEN)?;
    for (tag, len) in [(4, LEN), (3, LEN - 1), (3, LEN)] {
        let sent = Point::new(1, 3, &buffer, block(0)?);
        let received = Point::new(0, tag, &buffer, Layout::contiguous::<u32>(0, len)?);
        let (sends, receives) = if me == 0 { (vec![sent], vec![]) } else { (vec![], vec![received]) };
        let made = points_init(&mut world, sends, receives, &Options::default()).await;
        let (mine, other) = if me == 0 { (LEN, LEN - 1) } else { (LEN - 1, LEN) };
        let (side, member) = (if me == 0 { Side::Destination } else { Side::Source }, 1 - me);
        let (mine, theirs) = (4 * mine as u64, 4 * other as u64);
        let want = match (tag, len) {
            (4, _) => PrdmaError::Unmatched { side, slot: 0, member },
            (_, LEN) => {
                let (mut sends, mut receives) = made?;
                let mut request = sends.pop().or(receives.pop()).ok_or("one was asked for")?;
                request.start().await?;
                request.wait().await?;
                world.barrier().await?;
                continue;
            }
            _ => PrdmaError::Size { side, slot: 0, member, mine, theirs },
        };
        ensure_eq!(made.err(), Some(want), "tag {tag}, {len} elements");
    }
    Ok(())
}
