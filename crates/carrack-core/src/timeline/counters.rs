//! What is counted at one end, in groups. Times are in microseconds, sizes in bytes.
//!
//! A *counter* only grows, from 0 where the session begins: what happened in between is the difference of two of them.
//! A *gauge* is what it is at the moment. Both travel and are written as a list: fields are only ever added at the end
//! of a group, and a reader takes the fields that are missing for 0.

use crate::groups::{counters, gauges};

counters! {
    /// The time of one stage, over all threads that work in it.
    pub struct StageTime {
        /// On a processor, or ready for one.
        worked_us,
        /// Waiting: for storage, for the connection, for the rate that was asked for.
        waited_us,
        /// Calls, slices, files: whatever the stage counts.
        calls,
    }
}

counters! {
    /// TCP's counters of one connection, or of several together. Those that the kernel does not have are 0.
    pub struct TcpCounts {
        /// Bytes that the other host has acknowledged.
        delivered,
        /// Bytes that have come in order.
        received,
        /// Segments sent, those sent again included.
        segments,
        /// Segments sent again.
        retransmits,
        /// Time in which something was sent and not acknowledged.
        busy_us,
        /// Of that, time in which the other host's receive window allowed no more.
        rwnd_limited_us,
        /// Of that, time in which this host's send buffer allowed no more.
        sndbuf_limited_us,
        /// Retransmission timeouts.
        timeouts,
        /// Time lost in them.
        timeouts_us,
        /// Segments that came out of order: lost on the way, or overtaken.
        out_of_order,
    }
}

gauges! {
    /// How a TCP connection stands; of several the largest times and the sums of the bytes.
    pub struct TcpState {
        /// Smoothed round trip.
        rtt_us,
        /// Shortest round trip in the kernel's window.
        min_rtt_us,
        /// Bytes that the congestion window allows in flight.
        cwnd_bytes,
        /// Bytes that the other host's receive window allows.
        window_bytes,
        /// Bytes sent and not acknowledged.
        in_flight_bytes,
        /// Bytes in the send buffer that have not been sent.
        unsent_bytes,
        /// Bytes in the receive buffer that have not been read.
        unread_bytes,
        /// Bytes a second delivered, as measured over the last round trip.
        delivery_rate,
        /// How far round trips differ from the smoothed one, in the mean.
        rtt_var_us,
        /// The largest packet that the path takes, as the kernel knows it.
        path_mtu_bytes,
    }
}

counters! {
    /// Processor time of a thread.
    pub struct ThreadTime {
        /// Used.
        cpu_us,
        /// Waited for a processor while ready to run.
        starved_us,
    }
}

counters! {
    /// Processor time of an end's process and host.
    pub struct ProcessorTime {
        /// Used by the process.
        process_us,
        /// Used by the threads of the data streams, those included that have ended.
        streams_us,
        /// The same threads waited for a processor while ready to run.
        starved_us,
        /// All processors of the host together: at work for anybody.
        busy_us,
        /// All processors together: idle.
        idle_us,
        /// Of the idle time, with a process of the host waiting for a disk.
        disk_wait_us,
        /// All processors together: ready, but the hypervisor gave them to others.
        stolen_us,
    }
}

gauges! {
    /// How the processors stood since the sample before.
    pub struct ProcessorState {
        /// Processors of the host.
        cores,
        /// Of these, idle for more than half of the time.
        idle_cores,
        /// Share of the time that the busiest processor was at work, in thousandths.
        busiest_core_permille,
        /// Share of the time that the busiest thread of a data stream was on a processor, in thousandths.
        busiest_thread_permille,
        /// Share of the time that the busiest thread of a data stream waited for a processor, in thousandths.
        starved_thread_permille,
        /// Processors that the process may use, in thousandths: affinity, and the quota of its control groups.
        allowed_permille,
    }
}

counters! {
    /// What a block device did, for anybody.
    pub struct DeviceCounts {
        /// Bytes read.
        read_bytes,
        /// Bytes written.
        written_bytes,
        /// Requests completed.
        requests,
        /// Time that requests took, summed over them.
        wait_us,
        /// Time in which at least one request was in flight.
        busy_us,
    }
}

counters! {
    /// What a network interface did, for anybody.
    pub struct InterfaceCounts {
        /// Bytes received.
        received_bytes,
        /// Bytes sent.
        sent_bytes,
        /// Packets dropped on receiving.
        received_dropped,
        /// Packets dropped on sending.
        sent_dropped,
        /// Errors, both ways.
        errors,
    }
}

counters! {
    /// Pressure stall information: time in which some tasks, or all of them (`full`), could not go on.
    pub struct Pressure {
        /// Some waited for a processor.
        cpu_some_us,
        /// Some waited for a disk.
        io_some_us,
        /// All waited for a disk.
        io_full_us,
        /// Some waited for memory.
        memory_some_us,
        /// All waited for memory.
        memory_full_us,
    }
}

counters! {
    /// How the control groups of the process held it back from the processors.
    pub struct Throttled {
        /// Periods in which it used its quota up.
        periods,
        /// Time that it was held back.
        time_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_back_from_lists_of_any_length() {
        let counts = TcpCounts::from_values(1..=10);
        assert_eq!((counts.delivered, counts.out_of_order), (1, 10));
        assert_eq!(counts.values(), (1..=10).collect::<Vec<_>>());
        assert_eq!(TcpCounts::NAMES.len(), 10);
        assert_eq!(TcpCounts::from_values([7]), TcpCounts { delivered: 7, ..TcpCounts::default() });
        assert_eq!(TcpCounts::from_values(1..=1000), counts);
        let mut named = TcpCounts::default();
        for (name, value) in TcpCounts::NAMES.iter().zip(counts.values()) {
            assert!(named.set(name, value));
        }
        assert_eq!(named, counts);
        assert!(!named.set("no such counter", 1));
    }

    #[test]
    fn counters_neither_overflow_nor_go_below_nothing() {
        let most = StageTime { worked_us: u64::MAX, waited_us: u64::MAX, calls: u64::MAX };
        let one = StageTime { worked_us: 1, waited_us: 1, calls: 1 };
        assert_eq!(most.plus(&one), most);
        assert_eq!(one.since(&most), StageTime::default());
        assert_eq!(most.since(&one).plus(&one), most);
    }
}
