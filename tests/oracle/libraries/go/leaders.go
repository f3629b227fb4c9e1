package main

import (
	"fmt"
	"sort"

	ibm "github.com/IBM/sarama"
	segmentio "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var franzGoBalancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

// franzGo does what the client does as leader, which sorts members by instance id, those without one last, and id.
func franzGo(asked group) (answer, error) {
	var members []kmsg.JoinGroupResponseMember
	for _, each := range asked.Members {
		joined := kmsg.NewJoinGroupResponseMember()
		joined.MemberID, joined.InstanceID, joined.ProtocolMetadata = each.ID, each.InstanceID, each.Subscription
		members = append(members, joined)
	}
	sort.SliceStable(members, func(i, j int) bool {
		one, other := members[i], members[j]
		if (one.InstanceID == nil) != (other.InstanceID == nil) {
			return one.InstanceID != nil
		}
		if one.InstanceID != nil && *one.InstanceID != *other.InstanceID {
			return *one.InstanceID < *other.InstanceID
		}
		return one.MemberID < other.MemberID
	})
	balancer, topics, err := franzGoBalancers[asked.Assignor]().MemberBalancer(members)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for topic := range topics {
		if count, known := asked.Topics[topic]; known {
			counts[topic] = count
		}
	}
	plan, err := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(counts)
	if err != nil {
		return nil, err
	}
	given := answer{}
	for _, each := range plan.IntoSyncAssignment() {
		var assignment kmsg.ConsumerMemberAssignment
		if err := assignment.ReadFrom(each.MemberAssignment); err != nil {
			return nil, err
		}
		given[each.MemberID] = map[string][]int32{}
		for _, topic := range assignment.Topics {
			given[each.MemberID][topic.Topic] = topic.Partitions
		}
	}
	return given, nil
}

var saramaStrategies = map[string]func() ibm.BalanceStrategy{
	"range":              ibm.NewBalanceStrategyRange,
	"roundrobin":         ibm.NewBalanceStrategyRoundRobin,
	"sticky":             ibm.NewBalanceStrategySticky,
	"cooperative-sticky": ibm.NewBalanceStrategyCooperativeSticky,
}

// sarama knows every subscribed topic: its leader fails before if there is one without metadata.
func sarama(asked group) (answer, error) {
	members := make(map[string]ibm.ConsumerGroupMemberMetadata, len(asked.Members))
	topics := map[string][]int32{}
	for _, each := range asked.Members {
		read, err := (&ibm.GroupMemberDescription{MemberMetadata: each.Subscription}).GetMemberMetadata()
		if err != nil {
			return nil, err
		}
		members[each.ID] = *read
		for _, topic := range read.Topics {
			topics[topic] = nil
		}
	}
	for topic := range topics {
		for partition := range asked.Topics[topic] {
			topics[topic] = append(topics[topic], partition)
		}
	}
	plan, err := saramaStrategies[asked.Assignor]().Plan(members, topics)
	return answer(plan), err
}

var kafkaGoBalancers = map[string]segmentio.GroupBalancer{
	"range":         segmentio.RangeGroupBalancer{},
	"roundrobin":    segmentio.RoundRobinGroupBalancer{},
	"rack-affinity": segmentio.RackAffinityGroupBalancer{},
}

// kafkaGo reads subscriptions with Sarama's decoder, as its own is not public.
func kafkaGo(asked group) (answer, error) {
	var members []segmentio.GroupMember
	named := map[string]bool{}
	for _, each := range asked.Members {
		read, err := (&ibm.GroupMemberDescription{MemberMetadata: each.Subscription}).GetMemberMetadata()
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", each.ID, err)
		}
		members = append(members, segmentio.GroupMember{ID: each.ID, Topics: read.Topics, UserData: read.UserData})
		for _, topic := range read.Topics {
			named[topic] = true
		}
	}
	balancer := kafkaGoBalancers[asked.Assignor]
	given := answer{}
	for id, topics := range balancer.AssignGroups(members, kafkaGoPartitions(asked, named)) {
		given[id] = map[string][]int32{}
		for topic, partitions := range topics {
			for _, partition := range partitions {
				given[id][topic] = append(given[id][topic], int32(partition))
			}
		}
	}
	return given, nil
}

// kafkaGoPartitions are those of the named topics in order; the first rack of a partition is its leader's.
func kafkaGoPartitions(asked group, named map[string]bool) []segmentio.Partition {
	var names []string
	for name := range asked.Topics {
		if named[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var partitions []segmentio.Partition
	for _, name := range names {
		for id := range int(asked.Topics[name]) {
			partition := segmentio.Partition{Topic: name, ID: id}
			if racks := asked.Racks[name]; id < len(racks) && len(racks[id]) > 0 {
				partition.Leader.Rack = racks[id][0]
			}
			partitions = append(partitions, partition)
		}
	}
	return partitions
}
