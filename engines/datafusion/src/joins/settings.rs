//! What users can set.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::config::ConfigOptions;

extensions_options! {
    /// Settings of [`register_joins`](crate::register_joins): `SET warpset_joins.enabled = false`, and so on.
    pub struct JoinSettings {
        /// Whether joins are screened.
        pub enabled: bool, default = true
        /// Joins whose probe side is known to have fewer rows are left alone.
        pub least_probe_rows: usize, default = 100_000
        /// Bytes that the filter of one join takes at most.
        pub most_filter_bytes: usize, default = 32 << 20
        /// Whether joins are screened although nothing drops rows of their build sides, which is where nearly every row of a probe side has a partner.
        pub every_build: bool, default = false
        /// Whether joins are screened by subqueries, where [`screen_by_subquery`](crate::screen_by_subquery) was called: for engines whose plans leave the process.
        pub subqueries: bool, default = false
    }
}

impl ConfigExtension for JoinSettings {
    const PREFIX: &'static str = "warpset_joins";
}

impl JoinSettings {
    /// The settings of a session; the defaults where none were registered.
    pub(crate) fn of(options: &ConfigOptions) -> JoinSettings {
        options.extensions.get::<JoinSettings>().cloned().unwrap_or_default()
    }

    /// Makes them settings of a session, unless they are already.
    pub(crate) fn add_to(options: &mut ConfigOptions) {
        if options.extensions.get::<JoinSettings>().is_none() {
            options.extensions.insert(JoinSettings::default());
        }
    }
}
