//! Files that are replaced by the next generation.

use crate::children::{Place, SOON};
use named_lock::Error;
use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
};

/// Offsets in the file (`src/layout.rs`).
const BOOT: u64 = 24;
pub(crate) const GATE: u64 = 40;

fn overwrite(place: &Place, at: u64, word: u64) {
    let file = File::options().write(true).open(place.path()).expect("opened");
    file.write_all_at(&word.to_ne_bytes(), at).expect("written");
}

fn number(place: &Place) -> u64 {
    fs::metadata(place.path()).expect("there").ino()
}

/// Kills a process that writes, and waits until it has ended: the next file is made as if no
/// process held the lock.
fn tear(place: &Place) -> u32 {
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    holder.kill_to_zombie();
    holder.id()
}

pub(crate) fn torn_data_stay_torn_in_the_next_file() {
    let place = Place::new();
    let lock = place.open();
    let by = tear(&place);
    let first = number(&place);
    // As if the generation had ended: the next process that opens the lock replaces it.
    overwrite(&place, GATE, 2);
    let other = place.open();
    assert_ne!(number(&place), first);
    for lock in [&other, &lock] {
        let outcome = lock.write_within(SOON);
        assert!(matches!(outcome, Err(Error::Torn { by: reported, .. }) if reported == by), "{outcome:?}");
    }
    overwrite(&place, GATE, 2);
    let third = place.open();
    let mut guard = third.mend_within(SOON).expect("held");
    assert_eq!(guard.torn().map(|torn| torn.by), Some(by));
    guard.clear_torn().expect("cleared");
    guard.release().expect("released");
    overwrite(&place, GATE, 2);
    place.open().write_within(SOON).expect("whole").release().expect("released");
    lock.write_within(SOON).expect("whole").release().expect("released");
}

pub(crate) fn a_replacement_killed_half_way_is_continued() {
    let place = Place::new();
    let lock = place.open();
    let first = number(&place);
    // Closed, and no process has the file locked.
    overwrite(&place, GATE, 1);
    lock.write_within(SOON).expect("held").release().expect("released");
    overwrite(&place, GATE, 1);
    place.open().write_within(SOON).expect("held").release().expect("released");
    assert_eq!(number(&place), first);
    // Ended, but the next file was never put in its place.
    overwrite(&place, GATE, 2);
    lock.write_within(SOON).expect("held").release().expect("released");
    assert_ne!(number(&place), first);
}

pub(crate) fn a_file_of_another_boot_is_replaced() {
    let place = Place::new();
    drop(place.open());
    overwrite(&place, BOOT, 7);
    let first = number(&place);
    place.open().write_within(SOON).expect("whole").release().expect("released");
    assert_ne!(number(&place), first);
    // The process that wrote then is not alive, even if its number is in use now.
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    overwrite(&place, BOOT, 7);
    let outcome = place.open().write_within(SOON);
    assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == holder.id()), "{outcome:?}");
}
