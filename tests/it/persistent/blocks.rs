//! Exchanged data: layouts, element types, and the simpler calls.

use super::{
    FORMS,
    areas::Cut,
    exchange::{Exchange, Sizes, Spec, all, neighbours, place, through},
    shapes::Shape,
};
use fabric_conformance::ensure_eq;
use onesided::{
    ProgramResult,
    prdma::{Buffer, Form, Layout, Options},
};
use rdma_fabric::Fabric;

/// Exchanges each kind of block with each other kind, in pieces and packed.
pub(super) async fn layouts(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let cuts = [Cut::Contiguous, Cut::Column, Cut::Face, Cut::Drawn(3)];
    // Blocks with more pieces than the threshold are packed; no block has as many as the last one.
    let thresholds = [(Form::Fast, &[1, 12, 1000][..]), (Form::Mrc, &[1000]), (Form::Cpu, &[1, 1000])];
    for (form, thresholds) in thresholds {
        for (sends, receives) in cuts.iter().flat_map(|from| cuts.map(|to| (*from, to))) {
            for direct_blocks in thresholds {
                let options = Options { direct_blocks: *direct_blocks, ..Options::form(form) };
                let spec = Spec { sends, receives, options, ..Spec::new(Shape::ring(members), form) };
                through(fabric, &spec, 2).await?;
            }
        }
        for sizes in [Sizes::All(0), Sizes::All(1), Sizes::All(13), Sizes::Mixed(1)] {
            let spec = Spec { sizes, receives: Cut::Column, ..Spec::new(Shape::ring(members), form) };
            through(fabric, &spec, 3).await?;
        }
    }
    Ok(())
}

/// Exchanges between buffers with elements of different sizes: only bytes count.
pub(super) async fn elements(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    for form in FORMS {
        let mut hood = all(fabric, &Shape::ring(members)).await?;
        let send = Buffer::<f64>::new(fabric, 20)?;
        let words = Buffer::<u32>::new(fabric, 40)?;
        let halves = Buffer::<u16>::new(fabric, 80)?;
        let column = |start: usize| Layout::vector::<f64>(start, 5, 1, 2);
        let sends = [column(0)?, column(1)?];
        let options = Options::form(form);
        let in_words = [Layout::contiguous::<u32>(0, 10)?, Layout::vector::<u32>(10, 5, 2, 3)?];
        let mut to_words = hood.alltoallw_init(&send, &sends, &words, &in_words, &options).await?;
        let in_halves = [Layout::contiguous::<u16>(4, 20)?, Layout::vector::<u16>(28, 10, 2, 5)?];
        let mut to_halves = hood.alltoallw_init(&words, &in_words, &halves, &in_halves, &options).await?;
        for k in 0..4 {
            let value = |member: usize, at: usize| (k * 1000 + member * 100 + at) as f64 + 0.25;
            send.write(0, &(0..20).map(|at| value(me, at)).collect::<Vec<_>>())?;
            to_words.start().await?;
            to_words.wait().await?;
            to_halves.start().await?;
            to_halves.wait().await?;
            let (left, right) = neighbours(fabric);
            let (got, of) = (words.to_vec()?, |at: usize| at..at + 2);
            let double = |words: &[u32]| f64::from_bits(u64::from(words[0]) | u64::from(words[1]) << 32);
            for row in 0..5 {
                let from_left = double(&got[of(2 * row)]);
                ensure_eq!(from_left, value(left, 2 * row + 1), "{form}: column 1 of the left, iteration {k}");
                let from_right = double(&got[of(10 + 3 * row)]);
                ensure_eq!(from_right, value(right, 2 * row), "{form}: column 0 of the right, iteration {k}");
            }
            // Data forwarded to the left is sent from slot 0, and returns in slot 1 of the member
            // that sent it first.
            let got = halves.to_vec()?;
            for row in 0..10 {
                let word = u32::from(got[28 + 5 * row]) | u32::from(got[29 + 5 * row]) << 16;
                let (at, second) = (row / 2, row % 2 == 1);
                let bits = value((right + members - 1) % members, 2 * at + 1).to_bits();
                let want = if second { (bits >> 32) as u32 } else { bits as u32 };
                ensure_eq!(word, want, "{form}: row {row} of halves, iteration {k}");
            }
        }
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// Sends and receives blocks of one buffer.
pub(super) async fn one_buffer(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    for form in FORMS {
        for (sends, receives) in [(Cut::Contiguous, Cut::Column), (Cut::Column, Cut::Face)] {
            let spec = Spec { shared: true, sends, receives, ..Spec::new(Shape::ring(members), form) };
            through(fabric, &spec, 4).await?;
        }
    }
    Ok(())
}

/// Exchanges by each of the five calls.
pub(super) async fn calls(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let tangled = Shape::graph(&[vec![1, 2, 1], vec![1], vec![0]]);
    for form in [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu] {
        for shape in [Shape::ring(members), tangled.clone()] {
            for spec in Spec::new(shape, form).by_each_call() {
                through(fabric, &spec, 3).await?;
            }
        }
    }
    Ok(())
}

/// Checks that an exchange delivers the same bytes in all forms.
pub(super) async fn forms_agree(fabric: &Fabric) -> ProgramResult<()> {
    let shape = Shape::graph(&[vec![1, 2, 3, 1], vec![0, 0, 2], vec![2, 3], vec![0, 1, 2]]);
    let mut first: Option<Vec<Vec<u8>>> = None;
    for form in FORMS {
        let spec = Spec {
            sizes: Sizes::Mixed(9),
            sends: Cut::Drawn(11),
            receives: Cut::Drawn(12),
            ..Spec::new(shape.clone(), form)
        };
        let mut hood = all(fabric, &shape).await?;
        let mut exchange = Exchange::new(&mut hood, &spec).await?;
        ensure_eq!(exchange.request.form(), form, "there are queues enough");
        let mut images = Vec::new();
        for _ in 0..5 {
            exchange.steps(1).await?;
            images.push(exchange.data.received()?);
        }
        hood.group_mut().barrier().await?;
        match &first {
            None => first = Some(images),
            Some(first) => ensure_eq!(images, *first, "what {form} receives is not what {} does", FORMS[0]),
        }
    }
    Ok(())
}
