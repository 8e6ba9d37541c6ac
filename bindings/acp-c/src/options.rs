//! The `--acp-*` words of the command line, which ACP's launcher `acprun` and users give.

use core::ops::RangeInclusive;

/// The start of all words that are options of ACP.
const PREFIX: &str = "--acp-";

/// The options of a process, with ACP's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The rank, if a launcher of ACP has given one.
    pub(crate) rank: Option<u64>,
    pub(crate) ranks: u64,
    pub(crate) task: u64,
    pub(crate) local_port: u64,
    pub(crate) remote_port: u64,
    pub(crate) remote_host: String,
    /// Bytes of starter memory.
    pub(crate) starter_bytes: u64,
    /// Bytes of starter memory of the communication library.
    pub(crate) channel_bytes: u64,
    /// Bytes of starter memory of the data library.
    pub(crate) heap_bytes: u64,
    pub(crate) hook_small: u64,
    pub(crate) hook_large: u64,
    pub(crate) hook_huge: u64,
    pub(crate) hook_low: u64,
    pub(crate) hook_high: u64,
    pub(crate) ethernet_speed: u64,
    pub(crate) port_file: String,
    pub(crate) rank_offset: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            rank: None,
            ranks: 1,
            task: 0,
            local_port: 44_256,
            remote_port: 44_257,
            remote_host: "127.0.0.1".to_owned(),
            starter_bytes: 10_240,
            channel_bytes: 10_240,
            heap_bytes: 10_240,
            hook_small: 0,
            hook_large: 0,
            hook_huge: 0,
            hook_low: 128,
            hook_high: 131_072,
            ethernet_speed: 1000,
            port_file: String::new(),
            rank_offset: 1,
        }
    }
}

/// Where the value of an option goes, and its limits.
enum Target<'a> {
    Number(&'a mut u64, RangeInclusive<u64>),
    Rank(&'a mut Option<u64>, RangeInclusive<u64>),
    Text(&'a mut String),
}

impl Options {
    /// Returns the options in `words`, and the indices of all other words.
    ///
    /// # Errors
    /// A text that names the word.
    pub(crate) fn of(words: &[String]) -> Result<(Self, Vec<usize>), String> {
        let (mut options, mut others) = (Options::default(), Vec::new());
        let mut at = 0;
        while let Some(word) = words.get(at) {
            if word.starts_with(PREFIX) {
                options.set(word, words.get(at + 1))?;
                at += 2;
            } else {
                others.push(at);
                at += 1;
            }
        }
        if let Some(rank) = options.rank.filter(|rank| *rank >= options.ranks) {
            return Err(format!("--acp-myrank is {rank}, but there are {} ranks (--acp-nprocs)", options.ranks));
        }
        Ok((options, others))
    }

    fn target(&mut self, word: &str) -> Option<Target<'_>> {
        use Target::{Number, Rank, Text};
        const ANY: RangeInclusive<u64> = 0..=u64::MAX;
        const PORT: RangeInclusive<u64> = 1024..=65_535;
        const COUNT: RangeInclusive<u64> = 0..=10_000_000;
        Some(match word.strip_prefix(PREFIX)? {
            "myrank" => Rank(&mut self.rank, COUNT),
            "nprocs" => Number(&mut self.ranks, 1..=10_000_000),
            "taskid" => Number(&mut self.task, ANY),
            "port-local" => Number(&mut self.local_port, PORT),
            "port-remote" => Number(&mut self.remote_port, PORT),
            "host-remote" => Text(&mut self.remote_host),
            "size-smem" => Number(&mut self.starter_bytes, ANY),
            "size-smem-cl" => Number(&mut self.channel_bytes, ANY),
            "size-smem-dl" => Number(&mut self.heap_bytes, ANY),
            "malloc-hook-small" => Number(&mut self.hook_small, 0..=1),
            "malloc-hook-large" => Number(&mut self.hook_large, 0..=1),
            "malloc-hook-huge" => Number(&mut self.hook_huge, 0..=1),
            "malloc-hook-low" => Number(&mut self.hook_low, ANY),
            "malloc-hook-high" => Number(&mut self.hook_high, ANY),
            "ethernet-speed" => Number(&mut self.ethernet_speed, 1..=10_000_000),
            "portfile" => Text(&mut self.port_file),
            "offsetrank" => Number(&mut self.rank_offset, COUNT),
            _ => return None,
        })
    }

    fn set(&mut self, word: &str, value: Option<&String>) -> Result<(), String> {
        let target = self.target(word).ok_or_else(|| format!("`{word}` is not an option of ACP"))?;
        let value = value.filter(|value| !value.starts_with('-')).ok_or_else(|| format!("`{word}` has no value"))?;
        let number = |limits: RangeInclusive<u64>| {
            let number = parse(value).filter(|number| limits.contains(number));
            let (low, high) = (limits.start(), limits.end());
            number.ok_or_else(|| format!("`{word}` is `{value}`, which is not a number from {low} to {high}"))
        };
        match target {
            Target::Number(to, limits) => *to = number(limits)?,
            Target::Rank(to, limits) => *to = Some(number(limits)?),
            Target::Text(to) => value.clone_into(to),
        }
        Ok(())
    }
}

/// Parses a number as C's `strtoul` does with base 0: decimal, or with `0x` hexadecimal, or with `0`
/// octal.
fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<(Options, Vec<usize>), String> {
        Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn own_words_are_taken_and_others_stay() {
        let line = "prog -v --acp-myrank 1 --acp-nprocs 3 a --acp-size-smem 0x1000 --acp-host-remote host b";
        let (options, others) = of(line).unwrap();
        assert_eq!(others, [0, 1, 6, 11]);
        assert_eq!((options.rank, options.ranks, options.starter_bytes), (Some(1), 3, 4096));
        assert_eq!((&*options.remote_host, options.heap_bytes), ("host", 10_240));
        assert_eq!(of("prog"), Ok((Options::default(), vec![0])));
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, named) in [
            ("prog --acp-nonsense 1", "`--acp-nonsense` is not"),
            ("prog --acp-nprocs", "`--acp-nprocs` has no value"),
            ("prog --acp-nprocs -v", "`--acp-nprocs` has no value"),
            ("prog --acp-nprocs 0", "`0`, which is not a number from 1"),
            ("prog --acp-port-local 80", "from 1024 to 65535"),
            ("prog --acp-taskid 12x", "`12x`"),
            ("prog --acp-myrank 2 --acp-nprocs 2", "--acp-myrank is 2"),
        ] {
            let error = of(line).unwrap_err();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
