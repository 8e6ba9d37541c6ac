//! Descriptions of how the ranks of a job ended.

/// Returns a line for each way in which ranks ended: `rank 2: killed by signal 9 (SIGKILL)`, `ranks
/// 0, 1 and 3: exited with 1`. `ways` is indexed by rank. The line of rank `first` precedes the
/// others.
pub fn ends_in_words(ways: &[impl AsRef<str>], first: Option<usize>) -> Vec<String> {
    let mut order: Vec<usize> = (0..ways.len()).collect();
    order.sort_by_key(|&rank| first != Some(rank));
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for rank in order {
        let way = ways[rank].as_ref();
        let place = *places.entry(way).or_insert_with(|| {
            groups.push((way, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(rank);
    }
    groups.into_iter().map(|(way, ranks)| format!("{}: {way}", in_words(ranks))).collect()
}

/// Lists ranks: `rank 3`, `ranks 0, 2 to 5 and 7`.
fn in_words(mut ranks: Vec<usize>) -> String {
    ranks.sort_unstable();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for rank in &ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .flat_map(|(from, to)| match to - from {
            0 => vec![from.to_string()],
            1 => vec![from.to_string(), to.to_string()],
            _ => vec![format!("{from} to {to}")],
        })
        .collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{noun} {} and {last}", rest.join(", ")),
        _ => format!("{noun} {}", parts.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ends_share_a_line_and_the_first_failure_leads() {
        let ways = ["well", "bad", "well", "worse", "well", "well", "bad", "well"];
        let lines = ends_in_words(&ways, Some(3));
        assert_eq!(lines, ["rank 3: worse", "ranks 0, 2, 4, 5 and 7: well", "ranks 1 and 6: bad"]);
        assert_eq!(ends_in_words(&["well"; 5], None), ["ranks 0 to 4: well"]);
        assert_eq!(ends_in_words(&ways[..3], Some(1)), ["rank 1: bad", "ranks 0 and 2: well"]);
        assert!(ends_in_words(&[""; 0], None).is_empty());
    }
}
