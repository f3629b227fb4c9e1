// Times franz-go's balancers on the groups that benchmarks/assignors/groups.py wrote. The sticky balancer proper is an
// internal package, so benchmarks/assignors/peers.py puts this file into a copy of the module and builds it there.
// Prints the CPU nanoseconds of each counted round (of the whole process: garbage collection included).
//
// bench <folder> <assignor> <warm-up seconds> <rounds>
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kgo/internal/sticky"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const generation = 7

type group struct {
	members []sticky.GroupMember
	topics  map[string]int32
}

func main() {
	groups := read(os.Args[1])
	warmUp, err := strconv.ParseFloat(os.Args[3], 64)
	must(err)
	rounds, err := strconv.Atoi(os.Args[4])
	must(err)
	work := prepare(groups, os.Args[2])
	for began := cpu(); ; {
		work()
		if float64(cpu()-began) >= warmUp*1e9 {
			break
		}
	}
	for range rounds {
		runtime.GC()
		before := cpu()
		work()
		fmt.Println(cpu() - before)
	}
}

// prepare gives a function that assigns all groups once.
func prepare(groups []group, assignor string) func() {
	if assignor == "cooperative-sticky" {
		return func() {
			for _, g := range groups {
				if len(sticky.Balance(slices.Clone(g.members), g.topics)) == 0 {
					panic("no member was assigned anything")
				}
			}
		}
	}
	balancer := kgo.RangeBalancer()
	if assignor == "roundrobin" {
		balancer = kgo.RoundRobinBalancer()
	}
	var balances []kgo.GroupMemberBalancerOrError
	for _, g := range groups {
		balances = append(balances, joined(balancer, g))
	}
	return func() {
		for at, balance := range balances {
			_, err := balance.BalanceOrError(groups[at].topics)
			must(err)
		}
	}
}

func joined(balancer kgo.GroupBalancer, g group) kgo.GroupMemberBalancerOrError {
	var members []kmsg.JoinGroupResponseMember
	for _, each := range g.members {
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID = each.ID
		member.ProtocolMetadata = balancer.JoinGroupMetadata(each.Topics, nil, generation)
		members = append(members, member)
	}
	balance, _, err := balancer.MemberBalancer(members)
	must(err)
	return balance.(kgo.GroupMemberBalancerOrError)
}

func cpu() int64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func read(folder string) []group {
	members, topics := lines(folder, "members.txt"), lines(folder, "topics.txt")
	data, err := os.ReadFile(filepath.Join(folder, "arrays.bin"))
	must(err)
	next := func() []int32 {
		size := int(binary.BigEndian.Uint32(data))
		values := make([]int32, size)
		for at := range values {
			values[at] = int32(binary.BigEndian.Uint32(data[4+4*at:]))
		}
		data = data[4+4*size:]
		return values
	}
	memberStart, topicStart, partitions, subscription := next(), next(), next(), next()
	subscriptionStart, subscribed := next(), next()
	claimStart, claimTopic, claimPartition := next(), next(), next()

	groups := make([]group, len(memberStart)-1)
	for at := range groups {
		names := topics[topicStart[at]:topicStart[at+1]]
		counts := make(map[string]int32, len(names))
		for t, name := range names {
			counts[name] = partitions[int(topicStart[at])+t]
		}
		lists := make(map[int32][]string)
		groups[at].topics = counts
		for m := memberStart[at]; m < memberStart[at+1]; m++ {
			if _, known := lists[subscription[m]]; !known {
				var list []string
				for _, t := range subscribed[subscriptionStart[subscription[m]]:subscriptionStart[subscription[m]+1]] {
					list = append(list, names[t])
				}
				lists[subscription[m]] = list
			}
			groups[at].members = append(groups[at].members, sticky.GroupMember{
				ID:          members[m],
				Topics:      lists[subscription[m]],
				Owned:       owned(names, claimTopic[claimStart[m]:claimStart[m+1]], claimPartition[claimStart[m]:claimStart[m+1]]),
				Generation:  generation,
				Cooperative: true,
			})
		}
	}
	return groups
}

// owned gathers a member's claims by topic.
func owned(names []string, topic, partition []int32) []kmsg.ConsumerMemberMetadataOwnedPartition {
	var claims []kmsg.ConsumerMemberMetadataOwnedPartition
	place := make(map[int32]int)
	for at, t := range topic {
		to, known := place[t]
		if !known {
			to = len(claims)
			place[t] = to
			claims = append(claims, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: names[t]})
		}
		claims[to].Partitions = append(claims[to].Partitions, partition[at])
	}
	return claims
}

func lines(folder, name string) []string {
	file, err := os.Open(filepath.Join(folder, name))
	must(err)
	defer file.Close()
	var found []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		found = append(found, scanner.Text())
	}
	return found
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
