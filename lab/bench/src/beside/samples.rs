//! The samples that the program in C prints, as forms of a case.

use super::works::Work;
use crate::{
    operations::{Form, Sample},
    outside::placement::Class,
};
use std::collections::BTreeMap;

/// The samples of a library, by name and bytes.
#[derive(Debug, Default)]
pub(super) struct Samples {
    by_name: BTreeMap<(String, usize), Form>,
}

impl Samples {
    /// Adds a line of the program.
    ///
    /// # Errors
    /// The line is not one of a sample.
    pub(super) fn add(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let parsed = || {
            let [name, bytes, ns, ping_pong, clean] = words[..] else { return None };
            let sample = Sample { ns: ns.parse().ok()?, ping_pong: ping_pong.parse().ok()?, clean: clean == "1" };
            Some(((name.to_owned(), bytes.parse().ok()?), sample))
        };
        let (key, sample) = parsed().ok_or_else(|| format!("not a sample: {line}"))?;
        let form = || Form { name: key.0.clone(), samples: Vec::new() };
        self.by_name.entry(key.clone()).or_insert_with(form).samples.push(sample);
        Ok(())
    }

    /// Returns the fastest sample of a work at this distance, in ns; `None` if too few were clean.
    pub(super) fn least(&self, work: &Work, class: Class) -> Option<f64> {
        let of_name = |name: &&str| self.by_name.get(&((*name).to_owned(), work.bytes));
        let forms = work.others.iter().filter_map(of_name);
        forms.filter_map(|form| form.least(class)).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::works::WORKS, *};

    #[test]
    fn the_fastest_clean_sample_of_a_distance_counts() {
        let mut samples = Samples::default();
        let put = &WORKS[0];
        for line in ["put 8 30.5 50.0 1", "put 8 20.0 50.0 0", "put 8 25.0 200.0 1", "put 16 1.0 50.0 1"] {
            // A class needs seven.
            (0..7).for_each(|_| samples.add(line).unwrap());
        }
        assert_eq!(samples.least(put, Class::Near), Some(30.5));
        assert_eq!(samples.least(put, Class::Far), Some(25.0));
        assert_eq!(samples.least(put, Class::Sibling), None);
        assert_eq!(samples.least(put, Class::Any), Some(20.0));
        for wrong in ["", "put 8 30.5 50.0", "put x 30.5 50.0 1", "put 8 fast 50.0 1"] {
            assert!(samples.add(wrong).is_err(), "{wrong}");
        }
    }
}
