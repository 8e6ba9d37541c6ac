//! The macro of directives.

/// Declares node sets, templates, mappings and arrays, and updates shadows, by XcalableMP's
/// directives. Each statement expands to the calls that it stands for, in an `async` function that
/// returns a `Result`; names that it declares are variables of that function.
///
/// | statement | declares or does |
/// |---|---|
/// | `nodes p(4, 4) on group;`, `nodes p(*) on group;` | `p`: a [`NodeSet`](crate::NodeSet), the last dimension numbered fastest; `*` is all ranks |
/// | `template t(0..64, 0..64);` | `t`: half-open ranges of indices |
/// | `distribute t(block, cyclic(2), gblock([3, 5]), *) onto p;` | `t`: a [`Template`](crate::Template) |
/// | `align a(0..9, i, j) with t(i, j + 1, *);` | `a`: a [`Mapping`](crate::Mapping); a range is a dimension that is not distributed, and a dummy has the template's indices less its offset |
/// | `shadow a(0, 2, 1:2);` | `a` with layers on both sides, or below and above; `*` is all of a dimension |
/// | `array u, v: f64, mapped a on p;` | `u`, `v`: [`Array`](crate::Array)s |
/// | `reflect (u, v) width(0, /periodic/ 2, 1:2) orthogonal async(1) on p;` | updates shadows; all clauses but `on` may be left out |
/// | `wait_async(1, 2) on p;` | waits for ids |
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// use xmp_reflect::xmp;
///
/// async fn torus(fabric: Fabric) -> ProgramResult<()> {
///     let group = Group::world(&fabric).await?;
///     xmp! {
///         nodes p(2, 2) on group;
///         template t(0..8, 0..8);
///         distribute t(block, block) onto p;
///         align a(i, j) with t(i, j);
///         shadow a(1, 1:2);
///         array u: i64, mapped a on p;
///     }
///     u.fill(|index| 10 * index[0] + index[1])?;
///     xmp! { reflect (u) width(/periodic/ 1, /periodic/ 1:2) on p; }
///     let corner = |at: i64, cells: i64| (at + cells) % 8;
///     let (i, j) = (u.part().block(0).expect("a block").start, u.part().block(1).expect("a block").start);
///     assert_eq!(u.get(&[i - 1, j - 1])?, 10 * corner(i - 1, 8) + corner(j - 1, 8));
///     p.barrier().await?;
///     Ok(())
/// }
/// # checks::documented::run(4, &torus);
/// ```
///
/// # Errors
/// Directives that do not fit each other do not compile. A template has as many formats as ranges,
/// and the template's name is marked if it has not:
/// ```compile_fail,E0308
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     nodes p(*) on group;
///     template t(0..8, 0..8);
///     distribute t(block) onto p;
/// }
/// # Ok(()) }
/// ```
/// as for the subscripts in an `align`,
/// ```compile_fail,E0308
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     nodes p(*) on group;
///     template t(0..8, 0..8);
///     distribute t(block, *) onto p;
///     align a(i) with t(i);
/// }
/// # Ok(()) }
/// ```
/// and an array has as many shadows as dimensions:
/// ```compile_fail,E0308
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     nodes p(*) on group;
///     template t(0..8);
///     distribute t(block) onto p;
///     align a(0..3, i) with t(i);
///     shadow a(1);
/// }
/// # Ok(()) }
/// ```
/// Names that are not known are marked: formats,
/// ```compile_fail,E0425
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     nodes p(*) on group;
///     template t(0..8);
///     distribute t(blok) onto p;
/// }
/// # Ok(()) }
/// ```
/// dummies,
/// ```compile_fail,E0425
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     nodes p(*) on group;
///     template t(0..8);
///     distribute t(block) onto p;
///     align a(k) with t(i);
/// }
/// # Ok(()) }
/// ```
/// templates that are not distributed yet,
/// ```compile_fail,E0308
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! {
///     template t(0..8);
///     align a(i) with t(i);
/// }
/// # Ok(()) }
/// ```
/// and statements:
/// ```compile_fail,E0425
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! { nods p(4) on group; }
/// # Ok(()) }
/// ```
/// A statement of the wrong form is an error that shows the right one:
/// ```compile_fail
/// # async fn program(group: rdma_fabric::Group) -> Result<(), xmp_reflect::XmpError> {
/// xmp_reflect::xmp! { nodes p(4) in group; }
/// # Ok(()) }
/// ```
/// All other errors are those of the calls.
#[macro_export]
macro_rules! xmp {
    () => {};

    (nodes $p:ident(*) on $group:expr; $($rest:tt)*) => {
        #[allow(unused_mut)]
        let mut $p = $crate::directives::nodes(&[], $group)?;
        $crate::xmp! { $($rest)* }
    };
    (nodes $p:ident($($extent:expr),+) on $group:expr; $($rest:tt)*) => {
        #[allow(unused_mut)]
        let mut $p = $crate::directives::nodes(&[$($extent),+], $group)?;
        $crate::xmp! { $($rest)* }
    };
    (template $t:ident($($range:expr),+); $($rest:tt)*) => {
        let $t = $crate::directives::Shape([$($range),+]);
        $crate::xmp! { $($rest)* }
    };
    (distribute $t:ident($($formats:tt)+) onto $p:ident; $($rest:tt)*) => {
        let $t = $crate::directives::distribute($crate::__xmp_formats!([] $($formats)+), &$p, $t)?;
        $crate::xmp! { $($rest)* }
    };
    (align $a:ident($($array:expr),+) with $t:ident($($subscripts:tt)+); $($rest:tt)*) => {
        let $a = $crate::__xmp_align!([$($array),+] $t [] [0usize] $($subscripts)+);
        $crate::xmp! { $($rest)* }
    };
    (shadow $a:ident($($shadows:tt)+); $($rest:tt)*) => {
        let $a = $crate::directives::shadow($crate::__xmp_shadows!([] $($shadows)+), $a)?;
        $crate::xmp! { $($rest)* }
    };
    (array $($name:ident),+: $element:ty, mapped $a:ident on $p:ident; $($rest:tt)*) => {
        $(let $name = $crate::directives::array::<$element, _>(&$a, &$p)?;)+
        $crate::xmp! { $($rest)* }
    };
    (reflect ($($array:ident),+) width($($widths:tt)+) $($clause:ident $(($id:expr))?)*; $($rest:tt)*) => {
        $crate::__xmp_reflect!(($($array),+) [$crate::__xmp_widths!([] $($widths)+)] $($clause $(($id))?)*);
        $crate::xmp! { $($rest)* }
    };
    (reflect ($($array:ident),+) $($clause:ident $(($id:expr))?)*; $($rest:tt)*) => {
        $crate::__xmp_reflect!(($($array),+) [] $($clause $(($id))?)*);
        $crate::xmp! { $($rest)* }
    };
    (wait_async($($id:expr),+) on $p:ident; $($rest:tt)*) => {
        $p.wait_async(&[$($id),+]).await?;
        $crate::xmp! { $($rest)* }
    };

    (nodes $($wrong:tt)*) => { compile_error!("expected `nodes p(4, 4) on group;` or `nodes p(*) on group;`"); };
    (template $($wrong:tt)*) => { compile_error!("expected `template t(0..64, 0..64);`"); };
    (distribute $($wrong:tt)*) => { compile_error!("expected `distribute t(block, cyclic(2), *) onto p;`"); };
    (align $($wrong:tt)*) => { compile_error!("expected `align a(0..9, i, j) with t(i, j + 1);`"); };
    (shadow $($wrong:tt)*) => { compile_error!("expected `shadow a(0, 2, 1:2);`"); };
    (array $($wrong:tt)*) => { compile_error!("expected `array u, v: f64, mapped a on p;`"); };
    (reflect $($wrong:tt)*) => {
        compile_error!("expected `reflect (u, v) width(/periodic/ 2, 1:2) orthogonal async(1) on p;`");
    };
    (wait_async $($wrong:tt)*) => { compile_error!("expected `wait_async(1, 2) on p;`"); };
    ($unknown:ident $($rest:tt)*) => { let () = $crate::directives::statement::$unknown; };
}

/// The formats of a `distribute`, one after another.
#[doc(hidden)]
#[macro_export]
macro_rules! __xmp_formats {
    ([$($done:expr,)*]) => { [$($done),*] };
    ([$($done:expr,)*] * $(, $($rest:tt)*)?) => {
        $crate::__xmp_formats!([$($done,)* $crate::Format::None,] $($($rest)*)?)
    };
    ([$($done:expr,)*] $format:ident($argument:expr) $(, $($rest:tt)*)?) => {
        $crate::__xmp_formats!([$($done,)* $crate::directives::format_of::$format($argument),] $($($rest)*)?)
    };
    ([$($done:expr,)*] $format:ident $(, $($rest:tt)*)?) => {
        $crate::__xmp_formats!([$($done,)* $crate::directives::format::$format(),] $($($rest)*)?)
    };
    ([$($done:expr,)*] $($wrong:tt)*) => {
        compile_error!(concat!("expected a format, such as `block`, `cyclic(2)` or `*`: ", stringify!($($wrong)*)))
    };
}

/// The subscripts of a template in an `align`: each defines its dummy, as an alignment.
#[doc(hidden)]
#[macro_export]
macro_rules! __xmp_align {
    ([$($array:expr),+] $t:ident [$($unit:expr,)*] [$dim:expr]) => {
        $crate::directives::align([$($crate::directives::Subscript::from($array)),+], [$($unit),*], &$t)?
    };
    ($array:tt $t:ident [$($unit:expr,)*] [$dim:expr] * $(, $($rest:tt)*)?) => {
        $crate::__xmp_align!($array $t [$($unit,)* (),] [$dim + 1] $($($rest)*)?)
    };
    ($array:tt $t:ident [$($unit:expr,)*] [$dim:expr] $dummy:ident + $offset:literal $(, $($rest:tt)*)?) => {{
        let $dummy = $crate::Align::shifted($dim, $offset);
        $crate::__xmp_align!($array $t [$($unit,)* (),] [$dim + 1] $($($rest)*)?)
    }};
    ($array:tt $t:ident [$($unit:expr,)*] [$dim:expr] $dummy:ident - $offset:literal $(, $($rest:tt)*)?) => {{
        let $dummy = $crate::Align::shifted($dim, -$offset);
        $crate::__xmp_align!($array $t [$($unit,)* (),] [$dim + 1] $($($rest)*)?)
    }};
    ($array:tt $t:ident [$($unit:expr,)*] [$dim:expr] $dummy:ident $(, $($rest:tt)*)?) => {{
        let $dummy = $crate::Align::with($dim);
        $crate::__xmp_align!($array $t [$($unit,)* (),] [$dim + 1] $($($rest)*)?)
    }};
    ($array:tt $t:ident $units:tt $dim:tt $($wrong:tt)*) => {
        compile_error!(concat!("expected a subscript, such as `i`, `i + 1` or `*`: ", stringify!($($wrong)*)))
    };
}

/// The shadows of an array, one after another.
#[doc(hidden)]
#[macro_export]
macro_rules! __xmp_shadows {
    ([$($done:expr,)*]) => { [$($done),*] };
    ([$($done:expr,)*] * $(, $($rest:tt)*)?) => {
        $crate::__xmp_shadows!([$($done,)* $crate::Shadow::Full,] $($($rest)*)?)
    };
    ([$($done:expr,)*] $lo:tt : $hi:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_shadows!([$($done,)* $crate::Shadow::Width { lo: $lo, hi: $hi },] $($($rest)*)?)
    };
    ([$($done:expr,)*] $both:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_shadows!([$($done,)* $crate::Shadow::of($both),] $($($rest)*)?)
    };
    ([$($done:expr,)*] $($wrong:tt)*) => {
        compile_error!(concat!("expected a shadow, such as `2`, `1:2` or `*`: ", stringify!($($wrong)*)))
    };
}

/// The widths of a reflect, one after another.
#[doc(hidden)]
#[macro_export]
macro_rules! __xmp_widths {
    ([$($done:expr,)*]) => { &[$($done),*] };
    ([$($done:expr,)*] / periodic / $lo:tt : $hi:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_widths!([$($done,)* $crate::Widths { lo: $lo, hi: $hi, periodic: true },] $($($rest)*)?)
    };
    ([$($done:expr,)*] / periodic / $both:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_widths!([$($done,)* $crate::Widths::of($both).periodic(),] $($($rest)*)?)
    };
    ([$($done:expr,)*] $lo:tt : $hi:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_widths!([$($done,)* $crate::Widths { lo: $lo, hi: $hi, periodic: false },] $($($rest)*)?)
    };
    ([$($done:expr,)*] $both:tt $(, $($rest:tt)*)?) => {
        $crate::__xmp_widths!([$($done,)* $crate::Widths::of($both),] $($($rest)*)?)
    };
    ([$($done:expr,)*] $($wrong:tt)*) => {
        compile_error!(concat!("expected a width, such as `2`, `1:2` or `/periodic/ 1`: ", stringify!($($wrong)*)))
    };
}

/// The clauses of a reflect behind its widths.
#[doc(hidden)]
#[macro_export]
macro_rules! __xmp_reflect {
    (($($array:ident),+) [$($widths:expr)?] orthogonal async($id:expr) on $p:ident) => {{
        let reflect = $crate::directives::reflect(&[$($widths)?], true);
        $($p.reflect_async(&$array, &reflect, $id).await?;)+
    }};
    (($($array:ident),+) [$($widths:expr)?] async($id:expr) on $p:ident) => {{
        let reflect = $crate::directives::reflect(&[$($widths)?], false);
        $($p.reflect_async(&$array, &reflect, $id).await?;)+
    }};
    (($($array:ident),+) [$($widths:expr)?] orthogonal on $p:ident) => {{
        let reflect = $crate::directives::reflect(&[$($widths)?], true);
        $($p.reflect(&$array, &reflect).await?;)+
    }};
    (($($array:ident),+) [$($widths:expr)?] on $p:ident) => {{
        let reflect = $crate::directives::reflect(&[$($widths)?], false);
        $($p.reflect(&$array, &reflect).await?;)+
    }};
    ($($wrong:tt)*) => {
        compile_error!("expected `reflect (u, v) width(/periodic/ 2, 1:2) orthogonal async(1) on p;`")
    };
}
