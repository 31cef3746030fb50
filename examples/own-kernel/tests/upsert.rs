//! A user-defined operator in updates of a dictionary equals the closure of the same meaning on the host, on the
//! emulator, and on CUDA if there is a device.

use own_kernel::{Extremes, combine_extremes};
use warpset_gpu::testing::devices;
use warpset_kernels::operators::Operator;
use warpset_lsm::Lsm;

#[test]
fn extremes_of_sensors_stay_in_a_dictionary() {
    for device in &devices(5) {
        let builder = Lsm::<u64, u64>::builder().batch_size(256);
        let (mut there, mut host) = (builder.on(device).build().unwrap(), builder.build().unwrap());
        for batch in 0..4u64 {
            let sensors: Vec<u64> = (0..700 * batch + 1).map(|i| (i * i + batch) % 97).collect();
            let readings: Vec<u32> = sensors.iter().map(|i| (i * 0x9e37_79b9 + 7 * batch) as u32 >> 3).collect();
            combine_extremes(&mut there, &sensors, &readings).unwrap();
            let pairs: Vec<u64> = readings.iter().map(|&r| u64::from(r) << 32 | u64::from(r)).collect();
            host.upsert_bulk_with(&sensors, &pairs, Extremes::combine).unwrap();
            if batch == 2 {
                // A removal resets a sensor.
                there.remove_bulk(&[5, 6]).unwrap();
                host.remove_bulk(&[5, 6]).unwrap();
            }
            assert!(there.to_host().unwrap() == host, "batch {batch} on {device}");
        }
    }
}
