//! Products of pieces of all dimensions.

use super::{Corners, pieces::Piece};

/// Calls back with each product of one piece for each dimension that is not of own cells alone.
/// With [`Corners::Orthogonal`], all pieces but one are of own cells.
pub(super) fn products(dims: &[Vec<Piece>], corners: Corners, found: &mut impl FnMut(&[&Piece])) {
    let most = match corners {
        Corners::With | Corners::Carried => dims.len(),
        Corners::Orthogonal => 1,
    };
    extend(dims, most, &mut Vec::with_capacity(dims.len()), found);
}

/// Extends a product by the remaining dimensions, with at most `shadows` pieces of shadow.
fn extend<'a>(dims: &'a [Vec<Piece>], shadows: usize, chosen: &mut Vec<&'a Piece>, found: &mut impl FnMut(&[&Piece])) {
    let Some((first, rest)) = dims.split_first() else {
        if chosen.iter().any(|piece| piece.side != 0) {
            found(chosen);
        }
        return;
    };
    for piece in first {
        if piece.side == 0 || shadows > 0 {
            chosen.push(piece);
            extend(rest, shadows.saturating_sub(usize::from(piece.side != 0)), chosen, found);
            chosen.pop();
        }
    }
}
