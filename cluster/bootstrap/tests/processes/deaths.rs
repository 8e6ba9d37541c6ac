//! Processes that are killed.

use crate::{
    job::{LONG_LEASE, Start, coordinator, rank, run, run_apart},
    part::LONG,
};
use bootstrap::Succession;
use std::{thread::sleep, time::Duration, time::Instant};

const FOUR: Start<'_> =
    Start { lease: LONG_LEASE, nodes: &["a", "a", "b", "b"], hold: &[], succession: Succession::Never };

pub(crate) fn survivors_of_a_kill_get_the_same_resume() {
    let (_coordinator, mut parts) = run(&FOUR);
    let victim = parts.remove(1);
    let killed = Instant::now();
    victim.kill();
    let mut resumes = Vec::new();
    for part in &mut parts {
        let (at, drain) = part.line_at();
        assert_eq!(drain, "drain 1 [1]");
        println!("  drain {:?} after the kill", at - killed);
        assert!(at - killed < Duration::from_secs(3));
        part.expect_line("reopen 1");
        resumes.push(part.line());
    }
    assert!(resumes[0].starts_with("resume 1 [Some([0]), None, Some([2]), Some([3])] [(1,"), "{resumes:?}");
    assert!(resumes.iter().all(|resume| *resume == resumes[0]), "{resumes:?}");
}

pub(crate) fn a_rank_is_killed_during_the_drain_of_another() {
    let (_coordinator, mut parts) = run(&Start { hold: &[0, 0, 1, 0], ..FOUR });
    parts[1].kill();
    // It does not answer, so the other ranks wait for it.
    for index in [2, 0, 3] {
        parts[index].expect_line("drain 1 [1]");
    }
    assert!(parts[0].is_quiet_for(Duration::from_millis(100)));
    parts[2].kill();
    parts.drain(1..3).for_each(drop);
    let resumes: Vec<_> = parts
        .iter_mut()
        .map(|part| {
            part.expect_line("drain 2 [1, 2]");
            part.expect_line("reopen 2");
            part.line()
        })
        .collect();
    assert!(resumes[0].starts_with("resume 2 [Some([0]), None, None, Some([3])] [(1,"), "{resumes:?}");
    assert_eq!(resumes[0], resumes[1]);
}

pub(crate) fn a_rank_that_has_drained_is_killed() {
    // Rank 3 delays the first epoch, while rank 2, which has answered, is killed.
    let (_coordinator, mut parts) = run(&Start { hold: &[0, 0, 0, 1], ..FOUR });
    parts[1].kill();
    for index in [0, 2, 3] {
        parts[index].expect_line("drain 1 [1]");
    }
    sleep(Duration::from_millis(100));
    parts[2].kill();
    parts.drain(1..3).for_each(drop);
    let resumes: Vec<_> = parts.iter_mut().map(|part| part.after("resume ")).collect();
    assert!(resumes[0].starts_with("2 [Some([0]), None, None, Some([3])] [(1,"), "{resumes:?}");
    assert_eq!(resumes[0], resumes[1]);
}

pub(crate) fn ranks_are_killed_one_after_the_other() {
    let (coordinator, mut parts) = run(&FOUR);
    for (epoch, victim, index) in [(1, 3, 3), (2, 1, 1), (3, 0, 0)] {
        parts.remove(index).kill();
        for part in &mut parts {
            let resume = part.after("resume ");
            assert!(resume.starts_with(&format!("{epoch} ")) && resume.contains(&format!("[({victim}, ")), "{resume}");
        }
    }
    parts.remove(0).kill();
    assert_eq!(coordinator.wait(LONG).expect("an outcome").ends.len(), 4);
}

pub(crate) fn ranks_notice_a_killed_coordinator() {
    let (coordinator, mut parts) = run_apart(&FOUR);
    coordinator.kill();
    parts.iter_mut().for_each(|part| part.expect_line("coordinator lost"));
}

pub(crate) fn a_rank_is_killed_before_all_have_joined() {
    let (coordinator, secret) = coordinator(&FOUR);
    let start = |index| rank(&FOUR, index, coordinator.address(), &secret);
    let (mut first, second) = (start(0), start(1));
    // By then, both have connected.
    sleep(Duration::from_millis(500));
    second.kill();
    let line = first.line();
    assert!(line.starts_with("error rank 1 on here ended before all ranks had come"), "{line}");
    let line = start(2).line();
    assert!(line.starts_with("error rank 1 on here ended"), "{line}");
}
