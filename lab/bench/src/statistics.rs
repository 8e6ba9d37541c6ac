//! Statistics of samples.

/// Returns the value below which `part` of the values lie, one of the values; `None` if there are none.
pub(crate) fn quantile(mut values: Vec<f64>, part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * part) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied()
}

/// Returns the median; of an even number of values, the upper of the two middle ones.
pub(crate) fn median(values: Vec<f64>) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the smallest value.
pub(crate) fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

/// Returns the greatest value.
pub(crate) fn greatest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values() {
        let values = || (1..=20).rev().map(f64::from).collect::<Vec<_>>();
        assert_eq!(
            (quantile(values(), 0.1), median(values()), quantile(values(), 1.0)),
            (Some(3.0), Some(11.0), Some(20.0))
        );
        assert_eq!(median(vec![5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!((median(vec![]), quantile(vec![], 1.0), least([]), greatest([])), (None, None, None, None));
        assert_eq!((least(values()), greatest(values())), (Some(1.0), Some(20.0)));
    }
}
