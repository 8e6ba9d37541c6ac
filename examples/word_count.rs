//! Counts the words of a text, all ranks in one map that is spread over all ranks' memory.
//!
//! A rank that reads a word looks up its entry in the map, or creates it, and adds one to the value
//! by an atomic: an entry is global memory like any other. Rank 0 compares the counts with those of
//! a program without ranks. Run it between processes, in virtual time, and with a text of your own:
//!
//! ```text
//! cargo example word_count --release -- --ranks 4
//! cargo example word_count --release -- --ranks 4 --fabric virt
//! cargo example word_count --release -- --ranks 4 --file README.md
//! ```

use onesided::{
    Amo, Fabric, ProgramResult, Rank,
    acp::{Acp, Map, Options, TableRef},
};
use pico_args::Arguments;
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, process::ExitCode};

/// The text that is counted by default.
const TEXT: &str = include_str!("../LICENSE-APACHE");

/// Counts the words of `text`; each rank takes every `ranks`th line.
async fn word_count(fabric: Fabric, text: &str) -> ProgramResult<()> {
    let (me, ranks) = (fabric.rank(), fabric.ranks());
    let right = sequential(text);
    // An element has four words besides key and value, and its block two marks. Hashing may put
    // most elements on one rank.
    let (words, bytes) = (right.len(), right.keys().map(|word| key(word).len() + 56).sum::<usize>());
    let slots = words / ranks + 1;
    let options = Options::default().heap_bytes(bytes + 32 * slots + 8 * ranks + 1024);
    let acp = Acp::init_with(&fabric, options).await?;

    let at = acp.starter(Rank::new(0))?;
    if me == Rank::new(0) {
        let everybody: Vec<Rank> = (0..ranks as u32).map(Rank::new).collect();
        let counts = Map::<[u8], u64>::create(&acp, &everybody, slots, me).await?;
        acp.write(at, &counts.at().to_words()).await?;
    }
    acp.sync().await?;
    let mut map = [0; 3];
    acp.read(at, &mut map).await?;
    let counts = Map::<[u8], u64>::from_address(&acp, TableRef::from_words(map).ok_or("no map")?).await?;

    let start = fabric.now();
    let mut counted = 0;
    for line in text.lines().skip(me.index()).step_by(ranks) {
        for word in words_of(line) {
            let key = key(&word);
            let entry = match counts.find(&key).await? {
                Some(entry) => entry,
                None => {
                    // If another rank is faster, this changes nothing.
                    counts.insert(&key, &0).await?;
                    counts.find(&key).await?.ok_or("nobody removes words")?
                }
            };
            acp.fetch(entry.value, Amo::Add(1u64)).await?;
            counted += 1;
        }
    }
    let took = fabric.now() - start;
    println!("{me} counted {counted} words in {took:?}");
    acp.sync().await?;
    println!("{me} holds the counts of {} words", counts.len_local().await?);

    if me == Rank::new(0) {
        let mut all = BTreeMap::new();
        let mut entries = counts.iter();
        while let Some((key, count)) = entries.next().await? {
            let word = String::from_utf8(key)?;
            all.insert(word.trim_end_matches('\0').to_owned(), count);
        }
        if all != right {
            return Err("the counts differ from those of a program without ranks".into());
        }
        let mut often: Vec<(&String, &u64)> = all.iter().collect();
        often.sort_by_key(|&(word, count)| (u64::MAX - count, word));
        often.truncate(5);
        println!("{words} different words; most often: {often:?}");
    }
    acp.finalize().await?;
    Ok(())
}

fn sequential(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in text.lines().flat_map(words_of) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

fn words_of(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Returns a word padded to a multiple of 8 bytes: the value follows the key, and must be aligned.
fn key(word: &str) -> Vec<u8> {
    let mut key = word.as_bytes().to_vec();
    key.resize(key.len().next_multiple_of(8), 0);
    key
}

const USAGE: &str = "\
All ranks count the words of a text in one map over all ranks' memory.

  --file FILE          the text (the Apache License)
";

fn text(rest: Vec<OsString>) -> Result<String, String> {
    let mut rest = Arguments::from_vec(rest);
    let file = rest.opt_value_from_os_str("--file", |file| Ok::<_, String>(PathBuf::from(file)));
    let file = file.map_err(|error| error.to_string())?;
    if let Some(word) = rest.finish().first() {
        return Err(format!("there is no `{}`", word.display()));
    }
    let Some(file) = file else { return Ok(TEXT.to_owned()) };
    std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, |rest| text(rest).map(|text| async move |fabric| word_count(fabric, &text).await))
}
