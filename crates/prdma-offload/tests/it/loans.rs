//! Views in virtual time: loans of the simulator's memory.

use crate::{FORMS, fx100, views::ring};
use prdma_offload::{Buffer, Layout, Options};
use rdma_fabric::{Fabric, ProgramResult, join::now};

/// A view is the simulator's memory, unless other ranks may have the key.
#[test]
fn views_are_no_copies() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let field = Buffer::<u32>::in_place(&fabric, 33)?;
        field.view_mut(0..33)?.iter_mut().zip(1..).for_each(|(cell, number)| *cell = number);
        let at = field.view(0..33)?.as_ptr().addr();
        let (part, all) = (field.view(2..31)?, field.view(0..33)?);
        let rows = field.rows(1, 2, &[(8, 4)])?;
        assert_eq!([part.as_ptr().addr() - 8, all.as_ptr().addr(), rows.row(&[0]).as_ptr().addr() - 4], [at; 3]);
        assert_eq!((part[0], rows.row(&[7])), (3, &[30, 31][..]));
        drop((part, all, rows));
        // Of few elements, a copy takes less than one of the buffer, which a write beside them would have to make.
        assert_ne!(field.view(0..1)?.as_ptr().addr(), at);
        // Cells beside a view may be written, which the view does not show: it is not of them.
        let part = field.view(0..20)?;
        field.write(20, &[100])?;
        assert!(part.iter().copied().eq(1..=20));
        drop(part);
        let mut all = field.view_mut(0..33)?;
        let there = all.as_ptr().addr();
        assert_eq!(all[20], 100);
        all.fill(7);
        drop(all);
        let all = field.view(0..33)?;
        assert_eq!((all.as_ptr().addr(), &all[..]), (there, &[7; 33][..]));
        drop(all);
        // A writing view of a part is a copy: a request may use the rest.
        let mut part = field.view_mut(0..3)?;
        part.fill(8);
        assert_eq!(field.view(3..33)?[0], 7);
        drop(part);
        assert_eq!(field.to_vec()?[..4], [8, 8, 8, 7]);
        field.key().ok_or("memory in virtual time has a key")?;
        let mut all = field.view_mut(0..33)?;
        assert_ne!(all.as_ptr().addr(), there, "the memory itself, which other ranks may access");
        all.fill(9);
        drop(all);
        assert_eq!(field.to_vec()?, [9; 33]);
        Ok(())
    };
    fx100(1).run(&program).unwrap();
}

/// The source of a request that was dropped while active may still be read: a writing view is a copy.
#[test]
fn a_dropped_request_keeps_its_memory() {
    for form in FORMS {
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let mut hood = ring(&fabric).await?;
            let field = Buffer::<u64>::in_place(&fabric, 40)?;
            let cell = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
            let (sends, receives) = ([cell(1), cell(38)], [cell(0), cell(39)]);
            let mut request = hood.alltoallw_init(&field, &sends, &field, &receives, &Options::form(form)).await?;
            let at = field.view_mut(0..40)?.as_ptr().addr();
            request.start().await?;
            request.wait().await?;
            assert_eq!(field.view_mut(0..40)?.as_ptr().addr(), at, "{form}: after a whole iteration");
            if fabric.rank().index() == 0 {
                let _ = now(request.start());
            }
            drop(request);
            let lent = field.view_mut(0..40)?.as_ptr().addr() == at;
            assert_eq!(lent, fabric.rank().index() > 0, "{form}");
            Ok(())
        };
        fx100(2).run(&program).unwrap();
    }
}
