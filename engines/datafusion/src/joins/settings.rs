//! Settings of joins.

use std::any::Any;
use std::fmt::Display;
use std::str::FromStr;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{Result, config_err};
use datafusion::config::ConfigOptions;

/// Settings of [`register_joins`](crate::register_joins) and [`screen_by_subquery`](crate::screen_by_subquery):
/// `SET warpset_joins.enabled = false`, and so on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JoinSettings {
    /// Whether joins are screened. Default: true.
    pub enabled: bool,
    /// Least rows of a probe side: joins known to have fewer are not screened. Default: 100,000.
    pub least_probe_rows: usize,
    /// Most bytes of a join's filter. Default: 32 MiB.
    pub most_filter_bytes: usize,
    /// Most bytes of a bitmap in place of a Bloom filter; 0 for Bloom filters alone. Default: 2 MiB.
    pub most_bitmap_bytes: usize,
    /// Whether joins are screened even if nothing drops rows of their build sides, so that nearly every row of a probe
    /// side has a partner. Default: false.
    pub every_build: bool,
    /// Whether joins are screened by subqueries, where [`screen_by_subquery`](crate::screen_by_subquery) was called:
    /// for engines with distributed plans. Default: false.
    pub subqueries: bool,
}

impl Default for JoinSettings {
    fn default() -> JoinSettings {
        JoinSettings {
            enabled: true,
            least_probe_rows: 100_000,
            most_filter_bytes: 32 << 20,
            // Beyond, lookups miss the second-level cache, and those of a Bloom filter prefetch.
            most_bitmap_bytes: 2 << 20,
            every_build: false,
            subqueries: false,
        }
    }
}

impl ConfigExtension for JoinSettings {
    const PREFIX: &'static str = "warpset_joins";
}

// Implemented by hand: the engine's macro lists settings without their prefix, and Ballista would send them to its
// scheduler under meaningless names.
impl ExtensionOptions for JoinSettings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        fn parse<T: FromStr<Err: Display>>(field: &mut T, key: &str, value: &str) -> Result<()> {
            match value.trim().to_ascii_lowercase().parse() {
                Ok(value) => *field = value,
                Err(error) => {
                    let prefix = JoinSettings::PREFIX;
                    return config_err!("{value:?} is no value of the setting {prefix}.{key}: {error}");
                }
            }
            Ok(())
        }
        match key {
            "enabled" => parse(&mut self.enabled, key, value),
            "least_probe_rows" => parse(&mut self.least_probe_rows, key, value),
            "most_filter_bytes" => parse(&mut self.most_filter_bytes, key, value),
            "most_bitmap_bytes" => parse(&mut self.most_bitmap_bytes, key, value),
            "every_build" => parse(&mut self.every_build, key, value),
            "subqueries" => parse(&mut self.subqueries, key, value),
            _ => config_err!("{} has no setting {key:?}", JoinSettings::PREFIX),
        }
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: &dyn Display, description| ConfigEntry {
            key: format!("{}.{key}", JoinSettings::PREFIX),
            value: Some(value.to_string()),
            description,
        };
        vec![
            entry("enabled", &self.enabled, "Whether joins are screened"),
            entry("least_probe_rows", &self.least_probe_rows, "Joins with fewer rows to screen are left alone"),
            entry("most_filter_bytes", &self.most_filter_bytes, "Bytes that the filter of one join takes at most"),
            entry("most_bitmap_bytes", &self.most_bitmap_bytes, "Bytes of a bitmap at most; 0: no bitmaps"),
            entry("every_build", &self.every_build, "Whether nothing need drop rows of the build side"),
            entry("subqueries", &self.subqueries, "Whether joins are screened by subqueries, across processes"),
        ]
    }
}

impl JoinSettings {
    /// Returns the settings of a session, or the defaults if none are registered.
    pub(crate) fn of(options: &ConfigOptions) -> JoinSettings {
        options.extensions.get::<JoinSettings>().cloned().unwrap_or_default()
    }

    /// Registers the settings in a session, unless they are already.
    pub(crate) fn add_to(options: &mut ConfigOptions) {
        if options.extensions.get::<JoinSettings>().is_none() {
            options.extensions.insert(JoinSettings::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_lists_another_one_can_set() {
        let (mut ours, mut theirs) = (ConfigOptions::new(), ConfigOptions::new());
        JoinSettings::add_to(&mut ours);
        JoinSettings::add_to(&mut theirs);
        let values = ["false", "7", "64", "8", "true", "TRUE"];
        let keys =
            ["enabled", "least_probe_rows", "most_filter_bytes", "most_bitmap_bytes", "every_build", "subqueries"];
        for (key, value) in keys.iter().zip(values) {
            ours.set(&format!("warpset_joins.{key}"), value).unwrap();
        }
        let sent = ours.entries().into_iter().filter(|entry| entry.key.starts_with("warpset_joins."));
        for ConfigEntry { key, value, .. } in sent {
            theirs.set(&key, &value.unwrap()).unwrap();
        }
        let set = JoinSettings::of(&theirs);
        assert_eq!((set.enabled, set.least_probe_rows, set.every_build, set.subqueries), (false, 7, true, true));
        assert_eq!((set.most_filter_bytes, set.most_bitmap_bytes), (64, 8));
        for (key, value) in [("enabled", "maybe"), ("least_probe_rows", "-1"), ("other", "1")] {
            let error = ours.set(&format!("warpset_joins.{key}"), value).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
