//! The chain of causes of every system's error ends in the error of the fabric below it.

use onesided::{FabricError, Rank, acp::AcpError, blacs::BlacsError, fmpl::FmplError, lock, prdma::PrdmaError, xmp};
use std::error::Error;

/// Walks the causes of `error`, like a program that determines which rank was lost.
fn lost(error: &(dyn Error + 'static)) -> Option<Rank> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(FabricError::PeerLost { rank }) = error.downcast_ref() {
            return Some(*rank);
        }
        cause = error.source();
    }
    None
}

#[test]
fn a_lost_rank_is_a_cause_of_every_systems_error() {
    let rank = Rank::new(3);
    let fabric = || FabricError::PeerLost { rank };
    let errors: [Box<dyn Error>; 9] = [
        Box::new(onesided::sim::JobError::from(fabric())),
        Box::new(lock::LockError::from(fabric())),
        Box::new(lock::WindowError::from(fabric())),
        Box::new(lock::WindowError::from(lock::LockError::from(fabric()))),
        Box::new(PrdmaError::from(fabric())),
        Box::new(AcpError::from(fabric())),
        Box::new(FmplError::from(fabric())),
        Box::new(BlacsError::from(FmplError::from(fabric()))),
        Box::new(xmp::XmpError::from(fabric())),
    ];
    for error in errors {
        assert_eq!(lost(&*error), Some(rank), "{error:?}");
    }
}
