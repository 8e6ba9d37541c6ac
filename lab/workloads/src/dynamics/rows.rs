//! Arithmetic on rows of cells, which are columns of air.

/// Returns the value half-way between the second and the third of four points, to the fourth order.
#[inline]
fn half_way([a, b, c, d]: [f64; 4]) -> f64 {
    const NEAR: f64 = 7.0 / 12.0;
    const FAR: f64 = 1.0 / 12.0;
    NEAR * (b + c) - FAR * (a + d)
}

/// Subtracts `rate` times the net outflow: the flow at a row's far side minus that at its near
/// side.
pub(super) fn diverge(out: &mut [f64], rate: f64, near: &[f64], far: &[f64]) {
    for ((out, near), far) in out.iter_mut().zip(near).zip(far) {
        *out -= rate * (far - near);
    }
}

/// Subtracts `rate` times the net outflow of a carried quantity: its flux at a row's far side minus
/// that at its near side. `carried` contains the two rows before the row, the row, and the two rows
/// after it. The flow is the mean of the first two rows of `flow` at the near side, and of the last
/// two at the far side.
pub(super) fn transport(out: &mut [f64], rate: f64, flow: [&[f64]; 4], carried: [&[f64]; 5]) {
    let n = out.len();
    let [f0, f1, f2, f3] = flow.map(|row| &row[..n]);
    let [a, b, c, d, e] = carried.map(|row| &row[..n]);
    for k in 0..n {
        let near = 0.5 * (f0[k] + f1[k]) * half_way([a[k], b[k], c[k], d[k]]);
        let far = 0.5 * (f2[k] + f3[k]) * half_way([b[k], c[k], d[k], e[k]]);
        out[k] -= rate * (far - near);
    }
}

/// Multiplies the flows through the places between points, one less than there are points, by the
/// value half-way between the points: to the fourth order, and to the second at both ends.
pub(super) fn lift(flows: &mut [f64], points: &[f64]) {
    let last = flows.len() - 1;
    flows[0] *= 0.5 * (points[0] + points[1]);
    flows[last] *= 0.5 * (points[last] + points[last + 1]);
    for (flow, four) in flows[1..last].iter_mut().zip(points.windows(4)) {
        *flow *= half_way([four[0], four[1], four[2], four[3]]);
    }
}

/// Writes the velocities for momenta between two columns.
pub(super) fn velocity(into: &mut [f64], momentum: &[f64], rest: &[f64], density: [&[f64]; 2]) {
    let n = into.len();
    let (momentum, rest, [here, there]) = (&momentum[..n], &rest[..n], density.map(|row| &row[..n]));
    for k in 0..n {
        into[k] = momentum[k] / (rest[k] + 0.5 * (here[k] + there[k]));
    }
}

/// Writes the vertical velocities at the faces of a column, from its bottom to its top.
pub(super) fn rising(faces: &mut [f64], momentum: &[f64], rest: &[f64], density: &[f64]) {
    let inner = faces.len() - 2;
    faces[0] = 0.0;
    faces[inner + 1] = 0.0;
    let faces = &mut faces[1..=inner];
    let (momentum, rest, density) = (&momentum[..inner], &rest[..=inner], &density[..=inner]);
    for k in 0..inner {
        faces[k] = momentum[k] / (0.5 * (rest[k] + rest[k + 1] + density[k] + density[k + 1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fluxes_of_a_cubic_have_its_derivative_as_their_difference() {
        let rows = [-2.0, -1.0, 0.0, 1.0, 2.0_f64].map(|x| vec![2.0 * x * x * x - 3.0 * x * x + 5.0 * x - 7.0; 3]);
        let (ones, mut out) = (vec![1.0; 3], vec![0.0; 3]);
        transport(&mut out, 1.0, [&ones; 4], rows.each_ref().map(Vec::as_slice));
        assert!(out.iter().all(|change| (change + 5.0).abs() < 1e-13), "{out:?}");
    }

    #[test]
    fn vertical_fluxes_are_of_the_fourth_order_except_at_the_ends() {
        // For a parabola: the differences of x² - 1/12 are its derivative, and so are those of x² +
        // 1/4, the means; only the former are of the fourth order.
        let points: Vec<f64> = (0..6).map(|x| f64::from(x * x)).collect();
        let mut flows = vec![1.0; 5];
        lift(&mut flows, &points);
        assert_eq!((flows[0], flows[4]), (0.5, 20.5));
        for (at, flow) in flows.iter().enumerate().take(4).skip(1) {
            let x = at as f64 + 0.5;
            assert!((flow - (x * x - 1.0 / 12.0)).abs() < 1e-12, "{at}: {flow}");
        }
    }

    #[test]
    fn velocities_are_momenta_over_densities_and_end_at_bottom_and_top() {
        let (rest, density, momentum) = ([1.0, 3.0, 5.0], [0.5, 0.5, 0.5], [5.0, 9.0, 0.0]);
        let mut faces = [9.0; 4];
        rising(&mut faces, &momentum, &rest, &density);
        assert_eq!(faces, [0.0, 2.0, 2.0, 0.0]);
        let mut into = [0.0; 3];
        velocity(&mut into, &[3.0, 7.0, 11.0], &rest, [&[0.0; 3], &[1.0; 3]]);
        assert_eq!(into, [2.0, 2.0, 2.0]);
    }
}
