//! Views of buffers: the memory itself over threads, a copy in virtual time, equivalent for the
//! program.

use crate::{FORMS, both, fx100};
use checks::jobs::threads;
use prdma_offload::{Buffer, Edge, Form, Holder, Layout, Neighbourhood, Options, PrdmaError, Topology};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr};

/// A ring in which all members send to the left and to the right.
pub(crate) async fn ring(fabric: &Fabric) -> prdma_offload::Result<Neighbourhood> {
    let group = Group::world(fabric).await?;
    let (me, n) = (group.me(), group.len());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let edge = |member, label| Some(Edge { member, label });
    let (sources, destinations) = ([edge(left, 1), edge(right, 0)], [edge(left, 0), edge(right, 1)]);
    Neighbourhood::new(group, Topology::of(sources.into(), destinations.into())).await
}

/// Rows of a matrix whose first and last columns are shadows of the neighbours' inner ones.
const ROWS: usize = 5;
const WIDE: usize = 6;

fn column(at: usize) -> Layout {
    Layout::vector::<f64>(at, ROWS, 1, WIDE).expect("a column")
}

fn in_use<T>(got: Result<T, PrdmaError>) -> Option<Holder> {
    match got {
        Err(PrdmaError::InUse { holder, .. }) => Some(holder),
        _ => None,
    }
}

/// Computes on views of a field, whose border is exchanged in each step; returns the field.
async fn steps(fabric: Fabric, form: Form) -> ProgramResult<Vec<f64>> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<f64>::in_place(&fabric, ROWS * WIDE)?;
    let (sends, receives) = ([column(1), column(WIDE - 2)], [column(0), column(WIDE - 1)]);
    let mut request = hood.alltoallw_init(&field, &sends, &field, &receives, &Options::form(form)).await?;
    let me = fabric.rank().index() as f64;
    field.view_mut(0..ROWS * WIDE)?.iter_mut().enumerate().for_each(|(at, cell)| *cell = me * 100.0 + at as f64);
    for _ in 0..4 {
        request.start().await?;
        // The interior may be computed, sent cells may be read, received cells must not be
        // accessed.
        let rows = field.rows(1, WIDE - 2, &[(ROWS, WIDE)])?;
        let sum: f64 = (0..ROWS).map(|row| rows.row(&[row]).iter().sum::<f64>()).sum();
        drop(rows);
        let mut inside = field.rows_mut(2, WIDE - 4, &[(ROWS, WIDE)])?;
        for row in 0..ROWS {
            inside.row_mut(&[row]).iter_mut().for_each(|cell| *cell += sum / 1024.0);
        }
        drop(inside);
        assert_eq!(in_use(field.view(0..1)), Some(Holder::Receiver), "{form}");
        assert_eq!(in_use(field.view_mut(1..2)), Some(Holder::Sender), "{form}");
        request.wait().await?;
        let all = field.view(0..ROWS * WIDE)?;
        assert_eq!(in_use(field.view_mut(7..8)), Some(Holder::View), "{form}");
        assert_eq!(in_use(field.write(7, &[0.0])), Some(Holder::View), "{form}");
        let borders: f64 = (0..ROWS).map(|row| all[row * WIDE] - all[row * WIDE + WIDE - 1]).sum();
        drop(all);
        let mut all = field.view_mut(0..ROWS * WIDE)?;
        assert_eq!(in_use(field.view(7..8)), Some(Holder::ViewMut), "{form}");
        all[WIDE + 1] += borders / 64.0;
    }
    group_ends(&mut hood).await?;
    Ok(field.to_vec()?)
}

async fn group_ends(hood: &mut Neighbourhood) -> ProgramResult<()> {
    Ok(hood.group_mut().barrier().await?)
}

#[test]
fn a_field_is_computed_where_it_is() {
    let mut known = None;
    for form in FORMS {
        for ranks in [1, 2, 3] {
            let fields = both(ranks, &async |fabric: Fabric| steps(fabric, form).await);
            if ranks == 3 {
                assert_eq!(*known.get_or_insert_with(|| fields.clone()), fields, "{form}");
            }
        }
    }
}

/// A start that conflicts with a view starts nothing, and may be repeated.
async fn meets(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<u32>::in_place(&fabric, 8)?;
    let one = |at| Layout::contiguous::<u32>(at, 1).expect("a cell");
    for form in FORMS {
        let mut request =
            hood.alltoallw_init(&field, &[one(1), one(6)], &field, &[one(0), one(7)], &Options::form(form)).await?;
        for k in 0..3 {
            let view = field.view(0..1)?;
            assert_eq!(in_use(request.start().await), Some(Holder::View), "{form}");
            drop(view);
            let view = field.view_mut(1..2)?;
            assert_eq!(in_use(request.start().await), Some(Holder::ViewMut), "{form}");
            assert!(!request.is_active() && request.iterations() == k);
            drop(view);
            let (sent, inside) = (field.view(1..2)?, field.view_mut(2..6)?);
            request.start().await?;
            assert_eq!((sent.len(), inside.len()), (1, 4));
            drop((sent, inside));
            request.wait().await?;
        }
    }
    // Exchanges without a request also check.
    let view = field.view(7..8)?;
    let refused = hood.alltoallw(&field, &[one(1), one(6)], &field, &[one(0), one(7)]).await;
    assert_eq!(in_use(refused), Some(Holder::View));
    drop(view);
    field.write(1, &[7])?;
    field.write(6, &[7])?;
    hood.alltoallw(&field, &[one(1), one(6)], &field, &[one(0), one(7)]).await?;
    assert_eq!(field.to_vec()?, [7, 7, 0, 0, 0, 0, 7, 7]);
    group_ends(&mut hood).await
}

#[test]
fn a_start_that_meets_a_view_starts_nothing() {
    both(2, &meets);
}

/// A buffer that lends its memory is rejected where others would write to it unguarded.
async fn refused(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<u32>::in_place(&fabric, 8)?;
    let one = |at| Layout::contiguous::<u32>(at, 1).expect("a cell");
    let (sends, receives, options) = ([one(1), one(6)], [one(0), one(7)], Options::form(Form::Cpu));
    let error = hood.partitioned_init(&field, &sends, &field, &receives, 1, &options).await.map(drop).unwrap_err();
    assert!(matches!(error, PrdmaError::InPlace { .. }), "{error}");
    Ok(())
}

#[test]
fn partitions_are_refused_where_memory_is_lent() {
    threads(2).run(&refused).unwrap();
}

#[test]
fn views_are_inside_and_rows_that_are_written_are_disjoint() {
    let program = async |fabric: Fabric| {
        let field = Buffer::<u16>::in_place(&fabric, 12)?;
        for (start, run, dims) in
            [(0, 13, vec![]), (11, 1, vec![(2, 1)]), (0, 4, vec![(3, 5)]), (usize::MAX, 1, vec![])]
        {
            let error = field.rows(start, run, &dims).map(drop).unwrap_err();
            let outside = matches!(error, PrdmaError::Fabric(FabricError::OutOfBounds(_)));
            assert!(outside || matches!(error, PrdmaError::Layout(_)), "{start} {run} {dims:?}: {error}");
        }
        assert!(matches!(field.rows_mut(0, 3, &[(4, 2)]).map(drop), Err(PrdmaError::Layout(_))));
        assert_eq!(field.rows(0, 3, &[(4, 2)])?.row(&[3]).len(), 3);
        assert!(field.rows(40, 0, &[(4, 2)])?.row(&[1]).is_empty());
        assert!(field.view(5..5)?.is_empty());
        let mut rows = field.rows_mut(1, 2, &[(2, 6), (2, 3)])?;
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            rows.row_mut(&[a, b]).fill((10 * a + b + 1) as u16);
        }
        assert_eq!(rows.row(&[1, 0]), [11, 11]);
        drop(rows);
        assert_eq!(field.to_vec()?, [0, 1, 1, 0, 2, 2, 0, 11, 11, 0, 12, 12]);
        Ok(())
    };
    both(1, &program);
}

/// Rank 1 tries all keys that memory of rank 0 could have, while rank 0 checks its own memory.
async fn guesses(fabric: Fabric) -> ProgramResult<usize> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<u64>::in_place(&fabric, 8)?;
    let one = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
    let options = Options::form(Form::Cpu);
    let mut request = hood.alltoallw_init(&field, &[one(1), one(6)], &field, &[one(0), one(7)], &options).await?;
    field.view_mut(0..8)?.fill(fabric.rank().index() as u64 + 1);
    request.start().await?;
    request.wait().await?;
    group_ends(&mut hood).await?;
    let mut locked = 0;
    if fabric.rank() == Rank::new(0) {
        let view = field.view(0..8)?;
        assert_eq!(*view, [2, 1, 1, 1, 1, 1, 1, 2]);
        group_ends(&mut hood).await?;
        assert_eq!(*view, [2, 1, 1, 1, 1, 1, 1, 2]);
    } else {
        // The first indices of symmetric and of local regions; without Miri, all.
        let indices = if cfg!(miri) { [0..16, 1024..1040] } else { [0..1024, 1024..4096] };
        for (index, generation) in
            indices.into_iter().flatten().flat_map(|index| [1, 3, 5].map(|generation| (index, generation)))
        {
            let region = RegionKey { index, generation };
            let addr = RemoteAddr { rank: Rank::new(0), region, offset: 0 };
            // Regions that are not locked are the fabric's own words, and the neighbourhood's: not
            // accessed here.
            locked += usize::from(matches!(fabric.remote_word::<u64>(addr), Err(FabricError::Locked { .. })));
        }
        group_ends(&mut hood).await?;
    }
    Ok(locked)
}

#[test]
fn guessed_keys_do_not_lead_to_what_is_lent() {
    let locked = threads(2).run(&guesses).unwrap();
    // The field, and the request's words.
    assert_eq!(locked, [0, 2]);
}

/// Rank 1 ends while rank 0 waits for it; the bytes that rank 0 was to receive are never lent
/// again.
async fn left(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<u64>::in_place(&fabric, 8)?;
    let one = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
    let options = Options::form(Form::Cpu);
    let mut request = hood.alltoallw_init(&field, &[one(1), one(6)], &field, &[one(0), one(7)], &options).await?;
    if fabric.rank() == Rank::new(0) {
        request.start().await?;
    }
    group_ends(&mut hood).await?;
    if fabric.rank() == Rank::new(1) {
        return Ok(());
    }
    let error = request.wait().await.unwrap_err();
    assert!(matches!(error, PrdmaError::Fabric(FabricError::PeersLeft)), "{error}");
    assert_eq!(in_use(field.view(0..1)), Some(Holder::Broken));
    assert_eq!(in_use(field.view_mut(7..8)), Some(Holder::Broken));
    assert_eq!(field.view_mut(1..7)?.len(), 6);
    // By copying, they may be read.
    field.read(0, &mut [0])?;
    drop(request);
    assert_eq!(in_use(field.view(0..1)), Some(Holder::Broken));
    assert!(field.view(1..7).is_ok());
    drop(field);
    let next = Buffer::<u64>::in_place(&fabric, 8)?;
    assert_eq!(*next.view(0..8)?, [0; 8]);
    Ok(())
}

#[test]
fn buffers_of_a_broken_request_are_not_lent() {
    threads(2).run(&left).unwrap();
}

/// Dropping a request in mid-iteration leaves its bytes to the neighbours forever.
async fn dropped(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = ring(&fabric).await?;
    let field = Buffer::<u64>::in_place(&fabric, 8)?;
    let one = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
    let options = Options::form(Form::Cpu);
    let mut request = hood.alltoallw_init(&field, &[one(1), one(6)], &field, &[one(0), one(7)], &options).await?;
    request.start().await?;
    group_ends(&mut hood).await?;
    drop(request);
    assert_eq!(in_use(field.view(0..1)), Some(Holder::Receiver));
    group_ends(&mut hood).await
}

#[test]
fn a_request_that_is_dropped_while_active_keeps_its_bytes() {
    threads(2).run(&dropped).unwrap();
    // Where a view is a copy, it is not affected.
    let program = async |fabric: Fabric| {
        let mut hood = ring(&fabric).await?;
        let field = Buffer::<u64>::in_place(&fabric, 8)?;
        let one = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
        let options = Options::form(Form::Cpu);
        let mut request = hood.alltoallw_init(&field, &[one(1), one(6)], &field, &[one(0), one(7)], &options).await?;
        request.start().await?;
        group_ends(&mut hood).await?;
        drop(request);
        assert!(field.view(0..1).is_ok());
        group_ends(&mut hood).await
    };
    fx100(2).run(&program).unwrap();
}
