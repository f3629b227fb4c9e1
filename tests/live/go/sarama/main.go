// One member of a classic group over Sarama, until a line comes on stdin or stdin ends; says what client.py says.
//
// sarama-member '{"group_id": .., "client_id": .., ..}' topic ..
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"groupledger/tests/member"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

type telling struct{}

func (telling) Setup(session sarama.ConsumerGroupSession) error {
	member.Tell("assigned", session.MemberID(), session.Claims())
	return nil
}

func (telling) Cleanup(session sarama.ConsumerGroupSession) error {
	member.Tell("revoked", session.MemberID(), session.Claims())
	return nil
}

func (telling) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	asked, topics := member.Asked()
	group, err := sarama.NewConsumerGroup([]string{asked.Address}, asked.GroupID, config(asked))
	member.Must(err)
	for polling := member.Ready(); polling.Err() == nil; {
		if err := group.Consume(polling, topics, telling{}); err != nil {
			fmt.Fprintln(os.Stderr, err) // a rebalance that failed: the next turn joins again
			time.Sleep(200 * time.Millisecond)
		}
	}
	member.Must(group.Close())
}

func config(told member.Settings) *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V2_8_0_0
	made.ClientID = told.ClientID
	made.Metadata.RefreshFrequency = 500 * time.Millisecond
	made.Consumer.Group.Session.Timeout = time.Duration(told.SessionMS) * time.Millisecond
	made.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	made.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[told.Assignor]()}
	made.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	if told.Instance != nil {
		made.Consumer.Group.InstanceId = *told.Instance
	}
	return made
}
