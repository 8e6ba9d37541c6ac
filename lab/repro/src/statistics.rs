//! The statistics of the figures: slopes, on linear and on doubly logarithmic scales, and rank
//! correlation.

/// Returns the slope of the least-squares line through the points. `None` with fewer than two
/// distinct x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0).then(|| sxy / sxx)
}

/// Returns the largest deviation of a point from the least-squares line through all points, as a
/// share of the line's value there. `None` with fewer than two distinct x.
pub fn deviation_from_line(points: &[(f64, f64)]) -> Option<f64> {
    let (slope, n) = (slope(points)?, points.len() as f64);
    let at_zero = points.iter().map(|(x, y)| y - slope * x).sum::<f64>() / n;
    let shares = points.iter().map(|(x, y)| (y / (at_zero + slope * x) - 1.0).abs());
    Some(shares.fold(0.0, f64::max))
}

/// Returns the slope of the least-squares line through `(ln x, ln y)`: 1 for proportional data.
///
/// `None` with fewer than two distinct x, or if a coordinate is not positive and finite.
pub fn log_log_slope(points: &[(f64, f64)]) -> Option<f64> {
    if !points.iter().all(|&(x, y)| x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite()) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    slope(&logs)
}

/// Returns Spearman's rank correlation, with ties at their mean rank: 1 if `b` increases with `a`,
/// −1 if it decreases.
///
/// `None` if the lengths differ, or if one side has no two different values.
pub fn spearman(a: &[u64], b: &[u64]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let (ra, rb) = (mean_ranks(a), mean_ranks(b));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum() };
    let scale = (product(&ra, &ra) * product(&rb, &rb)).sqrt();
    (scale > 0.0).then(|| product(&ra, &rb) / scale)
}

/// Returns the rank of each value in sorted order, from 1; equal values share the mean of their
/// ranks.
fn mean_ranks(values: &[u64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&i| values[i]);
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for run in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let mean = first as f64 + (run.len() as f64 + 1.0) / 2.0;
        for &i in run {
            ranks[i] = mean;
        }
        first += run.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-12)
    }

    #[test]
    fn a_point_off_the_line_counts_by_its_share() {
        let line: Vec<(f64, f64)> = (0..5).map(|x| (f64::from(x), 3.0 + f64::from(x))).collect();
        assert!(deviation_from_line(&line).is_some_and(|deviation| deviation < 1e-12));
        let bent = [(0.0, 1.0), (1.0, 2.0), (2.0, 1.0)];
        assert!(deviation_from_line(&bent).is_some_and(|deviation| (deviation - 0.5).abs() < 1e-12));
        assert_eq!(deviation_from_line(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn slopes_of_lines() {
        assert!(close(slope(&[(0.0, 3.0), (1.0, 3.5), (4.0, 5.0)]), 0.5));
        assert_eq!(slope(&[(2.0, 3.0), (2.0, 5.0)]), None);
        assert_eq!(slope(&[]), None);
    }

    #[test]
    fn slopes_of_powers() {
        let power = |k: f64| [4.0f64, 8.0, 64.0, 4096.0].map(|x| (x, 3.0 * x.powf(k)));
        assert!(close(log_log_slope(&power(1.0)), 1.0));
        assert!(close(log_log_slope(&power(2.0)), 2.0));
        assert!(close(log_log_slope(&power(-0.5)), -0.5));
        assert_eq!(log_log_slope(&[(1.0, 1.0)]), None);
        assert_eq!(log_log_slope(&[]), None);
        assert_eq!(log_log_slope(&[(1.0, 0.0), (2.0, 1.0)]), None);
    }

    #[test]
    fn published_points_give_the_published_slope() {
        let points = [(4.0, 2.3), (128.0, 69.0), (256.0, 130.0), (1024.0, 520.0), (4096.0, 2200.0)];
        let slope = log_log_slope(&points).unwrap_or(f64::NAN);
        assert!((slope - 0.9865).abs() < 1e-4, "{slope}");
        let ends = log_log_slope(&[points[0], points[4]]).unwrap_or(f64::NAN);
        assert!((ends - 0.9902).abs() < 1e-4, "{ends}");
    }

    #[test]
    fn spearman_of_known_data() {
        assert!(close(spearman(&[1, 2, 3, 4], &[10, 200, 3000, 40_000]), 1.0));
        assert!(close(spearman(&[1, 2, 3, 4], &[9, 7, 5, 3]), -1.0));
        // The textbook case: IQ against hours of television, rho = -29/165.
        let iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110];
        let tv = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17];
        assert!(close(spearman(&iq, &tv), -29.0 / 165.0));
        // Ties: mean ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
        assert!(close(spearman(&[1, 2, 2, 3], &[1, 2, 3, 4]), 4.5 / (4.5f64 * 5.0).sqrt()));
        assert_eq!(spearman(&[1, 1, 1], &[1, 2, 3]), None);
        assert_eq!(spearman(&[1, 2], &[1, 2, 3]), None);
        assert_eq!(spearman(&[], &[]), None);
    }
}
