//! Memory that is lent to several threads of one rank, and the handling of memory of another job.

use crate::neighbours;
use checks::jobs::threads;
use prdma_offload::{Buffer, Form, Holder, Layout, Options, PrdmaError};
use rdma_fabric::{Fabric, FabricError, ProgramResult};
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// The duration of the interference between threads.
const LONG: Duration = Duration::from_millis(400);
const ROW: usize = if cfg!(miri) { 8 } else { 512 };

/// Returns whether all elements are the same.
fn is_uniform(row: &[u64]) -> bool {
    black_box(row).iter().all(|element| *element == row[0])
}

fn is_in_use<T>(got: &Result<T, PrdmaError>) -> bool {
    matches!(got, Err(PrdmaError::InUse { .. }))
}

#[test]
fn a_view_does_not_change_while_another_thread_writes() {
    let program = async |fabric: Fabric| {
        let field = Buffer::<u64>::in_place(&fabric, ROW)?;
        let (over, refused) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in (0..).take_while(|_| !over.load(SeqCst)) {
                    let written = field.write(0, &[number; ROW]);
                    assert!(written.is_ok() || is_in_use(&written), "{written:?}");
                    refused.fetch_add(u64::from(written.is_err()), SeqCst);
                }
            });
            let begun = Instant::now();
            while begun.elapsed() < LONG || refused.load(SeqCst) == 0 {
                let view = field.view(0..ROW)?;
                for _ in 0..4 {
                    if !is_uniform(&view) {
                        over.store(true, SeqCst);
                        panic!("a view changes: {:?}", &*view);
                    }
                }
            }
            over.store(true, SeqCst);
            Ok(())
        })
    };
    threads(1).run(&program).unwrap();
}

/// The blocks of [`neighbours`]: rows of [`ROW`] elements; the sent ones are the first.
fn rows(first: usize) -> [Layout; 3] {
    [first, first + 1, first + 2].map(|row| Layout::contiguous::<u64>(row * ROW, ROW).expect("a row"))
}

#[test]
fn bytes_in_flight_are_not_lent() {
    let program = async |fabric: Fabric| {
        // The rank is its own neighbour, so the sent data leave within the start.
        let mut hood = neighbours(&fabric).await?;
        let field = Buffer::<u64>::in_place(&fabric, 6 * ROW)?;
        let options = Options::form(Form::Cpu);
        let mut request = hood.alltoallw_init(&field, &rows(0), &field, &rows(3), &options).await?;
        let over = Arc::new(AtomicBool::new(false));
        let (other, stop) = (field.clone(), over.clone());
        let painter = thread::spawn(move || {
            let mut painted = 0;
            while !stop.load(SeqCst) {
                match other.view_mut(0..ROW) {
                    Ok(mut row) => {
                        painted += 1;
                        row.iter_mut().for_each(|element| *element = black_box(painted));
                    }
                    refused => assert!(is_in_use(&refused), "{refused:?}"),
                }
            }
            painted
        });
        let (begun, mut begins) = (Instant::now(), 0);
        let torn = loop {
            match request.start().await {
                Ok(()) => {}
                Err(PrdmaError::InUse { holder: Holder::ViewMut, .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            request.wait().await?;
            begins += 1;
            // Both edges lead back: one of the rows is the painted one.
            let received = field.view(3 * ROW..6 * ROW)?;
            let torn = received.chunks(ROW).any(|row| !is_uniform(row));
            if torn || begun.elapsed() > LONG && begins > 100 {
                break torn;
            }
        };
        over.store(true, SeqCst);
        let painted = painter.join().expect("the painter does not panic");
        assert!(!torn, "what left was written meanwhile, after {begins} starts and {painted} views");
        assert!(painted > 0);
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

#[test]
fn memory_of_another_job_is_refused() {
    let elsewhere = threads(1).run(&async |fabric: Fabric| Ok(Buffer::<u64>::in_place(&fabric, 6 * ROW)?));
    let elsewhere = elsewhere.unwrap().pop().expect("one rank");
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut hood = neighbours(&fabric).await?;
        // The other memory's key most probably identifies this memory here.
        let mine = Buffer::<u64>::in_place(&fabric, 6 * ROW)?;
        for (form, sends, receives) in [(Form::Cpu, &elsewhere, &mine), (Form::Cpu, &mine, &elsewhere)] {
            let options = Options::form(form);
            let made = hood.alltoallw_init(sends, &rows(0), receives, &rows(3), &options).await;
            let error = made.map(drop).expect_err("memory of another job");
            assert!(matches!(error, PrdmaError::Fabric(FabricError::NotMapped { .. })), "{error}");
        }
        Ok(())
    };
    threads(1).run(&program).unwrap();
}
