//! Sort of a partition's keys into its buckets, by counting (section 5.1).

use super::partition::Partition;
use crate::kind::Buckets;

/// Sorted keys of the current partition.
#[derive(Default)]
pub(super) struct BucketSort {
    keys: Vec<u64>,
    /// Start of each bucket, and the end of the last one.
    bounds: Vec<u32>,
    /// Keys and their buckets in the order of the lowest byte.
    by_lowest_byte: Vec<(u64, u16)>,
}

impl BucketSort {
    /// Sorts the keys of a partition of `buckets` buckets. Within a bucket they keep their order, or are ordered by
    /// their lowest byte.
    pub(super) fn sort(&mut self, partition: Partition, buckets: usize, by_lowest_byte: bool) {
        let Partition { lows, buckets: bucket_of } = partition;
        let Self { keys, bounds, .. } = self;
        bounds.clear();
        if buckets == 1 && !by_lowest_byte {
            keys.clear();
            keys.extend_from_slice(lows);
            bounds.extend([0, lows.len() as u32]);
            return;
        }
        bounds.resize(buckets + 1, 0);
        // Each place begins at its bucket's start and ends at the bucket's end.
        let places = &mut bounds[1..];
        bucket_of.iter().for_each(|&bucket| places[usize::from(bucket)] += 1);
        let mut sum = 0;
        places.iter_mut().for_each(|place| sum += std::mem::replace(place, sum));
        keys.resize(lows.len(), 0);
        let mut put = |low: u64, bucket: u16| {
            let place = &mut places[usize::from(bucket)];
            keys[*place as usize] = low;
            *place += 1;
        };
        if !by_lowest_byte {
            lows.iter().zip(bucket_of).for_each(|(&low, &bucket)| put(low, bucket));
            return;
        }
        sort_by_lowest_byte(partition, &mut self.by_lowest_byte);
        self.by_lowest_byte.iter().for_each(|&(low, bucket)| put(low, bucket));
    }

    pub(super) fn buckets(&mut self) -> Buckets<'_> {
        Buckets { keys: &mut self.keys, bounds: &self.bounds }
    }

    /// Returns the keys of one bucket.
    pub(super) fn keys_of(&mut self, bucket: usize) -> &mut [u64] {
        &mut self.keys[self.bounds[bucket] as usize..self.bounds[bucket + 1] as usize]
    }
}

fn sort_by_lowest_byte(Partition { lows, buckets }: Partition, sorted: &mut Vec<(u64, u16)>) {
    let mut places = [0_u32; 256];
    lows.iter().for_each(|&low| places[low as usize & 0xff] += 1);
    let mut sum = 0;
    places.iter_mut().for_each(|place| sum += std::mem::replace(place, sum));
    sorted.resize(lows.len(), (0, 0));
    for (&low, &bucket) in lows.iter().zip(buckets) {
        let place = &mut places[low as usize & 0xff];
        sorted[*place as usize] = (low, bucket);
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_to_their_buckets() {
        let mut sort = BucketSort::default();
        for (keys, buckets) in [(0, 0), (0, 3), (1, 1), (1000, 7), (100, 300), (5, 1)] {
            let lows: Vec<u64> = (0..keys).map(|i| i * 0x9e37_79b9).collect();
            let bucket_of: Vec<u16> = (0..keys).map(|i| (i * i % (buckets as u64).max(1)) as u16).collect();
            for by_lowest_byte in [false, true] {
                sort.sort(Partition { lows: &lows, buckets: &bucket_of }, buckets, by_lowest_byte);
                assert_eq!(sort.bounds.len(), buckets + 1);
                for bucket in 0..buckets {
                    let of = lows.iter().zip(&bucket_of).filter(|of| usize::from(*of.1) == bucket);
                    let mut expected: Vec<u64> = of.map(|of| *of.0).collect();
                    if by_lowest_byte {
                        expected.sort_by_key(|low| *low as u8);
                    }
                    assert_eq!(sort.keys_of(bucket), expected);
                }
            }
        }
    }
}
