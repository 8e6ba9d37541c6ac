//! Slurm node lists: `n[001-003,007],gpu[1-2]x`.

/// The maximum number of nodes of a list.
const LIMIT: usize = 1 << 16;

/// The maximum length of a name in bytes: that of a DNS name. It bounds the memory that a short
/// list can allocate.
const NAME_LIMIT: usize = 253;

/// A text is not a node list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a list of nodes: {why}")]
pub struct BadNodeList {
    /// The text.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

/// Returns the names that a Slurm node list denotes, in its order.
///
/// Entries are separated by commas. Brackets contain numbers and ranges, separated by commas too;
/// the numbers of a range are written with as many digits as its first one. An entry may have
/// several brackets: each number of the first is combined with all numbers of the second. A list
/// has 1 to 65536 names, of up to 253 bytes without their numbers.
pub fn node_list(text: &str) -> Result<Vec<String>, BadNodeList> {
    let bad = |why| BadNodeList { text: text.into(), why };
    let mut names = Vec::new();
    for entry in entries(text).map_err(bad)? {
        names.extend(names_of(entry).map_err(bad)?);
        if names.len() > LIMIT {
            return Err(bad("it has more than 65536 names"));
        }
    }
    Ok(names)
}

/// Splits a list at the commas outside of brackets.
fn entries(text: &str) -> Result<Vec<&str>, &'static str> {
    let (mut entries, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' if inside => return Err("a bracket is within a bracket"),
            ']' if !inside => return Err("a bracket is closed that was not opened"),
            '[' | ']' => inside = !inside,
            ',' if !inside => {
                entries.push(&text[begin..at]);
                begin = at + 1;
            }
            _ if letter.is_whitespace() => return Err("it has white space"),
            _ => {}
        }
    }
    if inside {
        return Err("a bracket is not closed");
    }
    entries.push(&text[begin..]);
    if entries.contains(&"") { Err("it has an empty entry") } else { Ok(entries) }
}

/// Returns the names of one entry, whose brackets are balanced.
fn names_of(entry: &str) -> Result<Vec<String>, &'static str> {
    let mut names = vec![String::new()];
    let mut rest = entry;
    let outside = |part: &str| part.split_once('[').map_or(part.len(), |(fixed, _)| fixed.len());
    if entry.split(']').map(outside).sum::<usize>() > NAME_LIMIT {
        return Err("a name has more than 253 bytes");
    }
    while let Some((fixed, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']').ok_or("a bracket is not closed")?;
        let numbers = numbers_of(ranges, LIMIT / names.len())?;
        names = names.iter().flat_map(|name| numbers.iter().map(move |it| format!("{name}{fixed}{it}"))).collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// Returns the numbers of a bracket's ranges, at most `limit`.
fn numbers_of(ranges: &str, limit: usize) -> Result<Vec<String>, &'static str> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (number(first)?, number(last)?);
        if low > high {
            return Err("a range runs backwards");
        }
        if high - low >= (limit - numbers.len()) as u64 {
            return Err("it has more than 65536 names");
        }
        numbers.extend((low..=high).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Ok(numbers)
}

fn number(text: &str) -> Result<u64, &'static str> {
    let digits = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or("a range is not of numbers of up to 18 digits")
}
