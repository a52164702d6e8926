//! Parts of lists: what comes after a marker, in the order of one column, then of creation.

use diesel::sql_types::{BigInt, Nullable, Text};

diesel::define_sql_function! {
    /// A text, or another one where there is none: the two databases disagree about where nothing is sorted.
    #[sql_name = "coalesce"]
    fn text_or(value: Nullable<Text>, otherwise: Text) -> Text;
}

diesel::define_sql_function! {
    /// As `text_or`, for times.
    #[sql_name = "coalesce"]
    fn time_or(value: Nullable<BigInt>, otherwise: BigInt) -> BigInt;
}

/// Cuts a boxed query over `$table` to the page, sorted by the expression `$by` of type `$type`, then by the order of creation.
macro_rules! cut {
    ($conn:expr, $table:ident, $query:expr, $page:expr, $by:expr, $type:ty) => {{
        let page: &$crate::store::Page = $page;
        let mut query = $query;
        if let Some(marker) = page.marker {
            let (value, seq): ($type, i64) = $table::table
                .filter($table::id.eq(marker.to_string()))
                .select(($by, $table::seq))
                .first($conn)
                .optional()?
                .ok_or($crate::store::fault::ReadFault::Read(
                    $crate::store::ReadError::UnknownMarker,
                ))?;
            query = if page.descending {
                query.filter(
                    $by.lt(value.clone())
                        .or($by.eq(value).and($table::seq.lt(seq))),
                )
            } else {
                query.filter(
                    $by.gt(value.clone())
                        .or($by.eq(value).and($table::seq.gt(seq))),
                )
            };
        }
        query = if page.descending {
            query.order(($by.desc(), $table::seq.desc()))
        } else {
            query.order(($by.asc(), $table::seq.asc()))
        };
        query.limit($crate::store::rows::limit(page.limit))
    }};
}
pub(super) use cut;
