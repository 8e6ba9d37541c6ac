//! Misuse, scarce queues, and the loss of a member.

use super::{FORMS, collectives};
use crate::fx100;
use checks::jobs::threads;
use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use prdma_offload::{Buffer, Form, Options, Pipeline, PrdmaError, Side};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank};

/// Errors of one member are reported to all, and the next call is not affected.
async fn wrong(fabric: Fabric) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let me = all.group().me();
    let buffer = Buffer::<u64>::new(&fabric, 8)?;
    let (options, whole) = (Options::default(), Pipeline::default());
    let odd = me == 1;
    let told = all.broadcast_init(0, &buffer, if odd { 5 } else { 0 }, 4, whole, &options).await.map(drop);
    match odd {
        true => assert!(matches!(told, Err(PrdmaError::OutOfBounds { side: Side::Source, .. })), "{told:?}"),
        false => assert_eq!(told, Err(PrdmaError::ElsewhereFailed)),
    }
    let told = all.broadcast_init(if odd { 9 } else { 0 }, &buffer, 0, 4, whole, &options).await.map(drop);
    match odd {
        true => assert_eq!(told, Err(FabricError::NoSuchRank { rank: Rank::new(9), ranks: 3 }.into())),
        false => assert_eq!(told, Err(PrdmaError::ElsewhereFailed)),
    }
    let told = all.broadcast_init(0, &buffer, 0, if odd { 3 } else { 4 }, whole, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Disagreement { least: 24, most: 32, .. })), "{told:?}");
    let told = all.allreduce_init(&buffer, &buffer, 4, u64::max, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Overlap { .. })), "{told:?}");
    let mut barrier = all.barrier_init(&options).await?;
    assert_eq!(barrier.form(), Form::Fast);
    barrier.start().await?;
    assert!(matches!(barrier.start().await, Err(PrdmaError::Active { iteration: 1 })));
    barrier.wait().await?;
    let mut request = all.broadcast_init(0, &buffer, 0, 4, whole, &options).await?;
    request.start().await?;
    let access = buffer.write(0, &[1]);
    assert!(matches!(access, Err(PrdmaError::InUse { .. })), "{access:?}");
    request.wait().await?;
    all.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn errors_are_reported_to_all() {
    threads(3).run(&wrong).unwrap();
    fx100(3).run(&wrong).unwrap();
}

/// Queues run out: the next form is the same at all members. A member that drops a request regains
/// its queues.
async fn scarce(fabric: Fabric) -> ProgramResult<Vec<Form>> {
    let mut all = collectives(&fabric).await?;
    let (mut requests, mut forms) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let request = all.barrier_init(&Options::default()).await?;
        forms.push(request.form());
        requests.push(request);
    }
    for request in &mut requests {
        request.start().await?;
    }
    for request in requests.iter_mut().rev() {
        request.wait().await?;
    }
    all.group_mut().barrier().await?;
    requests.clear();
    all.group_mut().barrier().await?;
    forms.push(all.barrier_init(&Options::default()).await?.form());
    let thrifty = Options { budget: if all.group().me() == 1 { 1 } else { 9 }, ..Options::default() };
    forms.push(all.barrier_init(&thrifty).await?.form());
    Ok(forms)
}

#[test]
fn members_agree_on_thriftier_forms_when_queues_run_out() {
    let outcome = fx100(8).ranks_per_node(3).run(&scarce).unwrap();
    let forms = &outcome.outs[0];
    assert!(outcome.outs.iter().all(|other| other == forms));
    for form in FORMS {
        assert!(forms[..40].contains(&form), "{forms:?}");
    }
    assert!(forms[..40].is_sorted_by_key(|form| FORMS.iter().position(|other| other == form)), "{forms:?}");
    assert_eq!(forms[40..], [Form::Fast, Form::Mrc]);
}

/// Member 2 fails after it has made its requests; the others repeat a wait that was dropped before.
async fn lost(fabric: Fabric, form: Form, told: &'static AtomicUsize) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let buffer = Buffer::<u64>::new(&fabric, 8)?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 8)?, Buffer::<u64>::new(&fabric, 8)?);
    let options = Options::form(form);
    let mut requests = vec![
        all.barrier_init(&options).await?,
        all.broadcast_init(2, &buffer, 0, 8, Pipeline::default(), &options).await?,
        all.allreduce_init(&send, &receive, 8, u64::wrapping_add, &options).await?,
    ];
    for round in 0..3 {
        if round == 2 {
            // A loss before this point would also fail waits of the previous round.
            all.group_mut().barrier().await?;
        }
        if round == 2 && all.group().me() == 2 {
            fabric.sleep(Duration::from_millis(100)).await;
            return Err("this member fails".into());
        }
        for request in &mut requests {
            let started = request.start().await;
            assert!(started.is_ok() || round == 2, "{started:?}");
        }
        for request in &mut requests {
            let at = fabric.now() + Duration::from_micros(1);
            let _ = fabric.before(at, request.wait()).await;
            let waited = request.wait().await;
            if round == 2 {
                // The lost member drops its memory and its queues just before it is lost.
                assert!(waited.is_err(), "{form}: {waited:?}");
                assert!(matches!(request.wait().await, Err(PrdmaError::Broken(_))));
                told.fetch_add(1, Ordering::Relaxed);
            } else {
                waited?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_loss_of_a_member_is_reported_to_all() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    for form in FORMS {
        let job = fx100(6).ranks_per_node(1);
        let error = job.run(&async |fabric| lost(fabric, form, &TOLD).await).unwrap_err().to_string();
        assert!(error.contains("this member fails"), "{form}: {error}");
        assert_eq!(TOLD.swap(0, Ordering::Relaxed), 3 * 5, "{form}, in virtual time");
        let error = threads(6).run(&async |fabric| lost(fabric, form, &TOLD).await).unwrap_err().to_string();
        assert!(error.contains("this member fails"), "{form}: {error}");
        assert_eq!(TOLD.swap(0, Ordering::Relaxed), 3 * 5, "{form}, on threads");
    }
}
