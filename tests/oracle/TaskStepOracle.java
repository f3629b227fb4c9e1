import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Steps of Streams groups' members (stdin, a line each: tests/oracle/task_steps.py) through Kafka's own builder. */
public class TaskStepOracle {
    public static void main(String[] args) throws Exception {
        JsonLines.answer(TaskStepOracle::answer);
    }

    private static ObjectNode answer(JsonNode step) {
        var group = new StreamsGroup(new LogContext(), new SnapshotRegistry(new LogContext()), "g");
        step.get("members").forEach(member -> group.updateMember(member(member)));
        JsonNode owned = step.get("owned");
        StreamsGroupMember now = new CurrentAssignmentBuilder(member(step.get("member")))
            .withTargetAssignment(step.get("epoch").asInt(), tasks(step.get("target")))
            .withCurrentActiveTaskProcessId(group::currentActiveTaskProcessId)
            .withCurrentStandbyTaskProcessIds(group::currentStandbyTaskProcessIds)
            .withCurrentWarmupTaskProcessIds(group::currentWarmupTaskProcessIds)
            .withOwnedAssignment(owned.isNull() ? null : tasks(owned))
            .build();
        ObjectNode result = JsonLines.JSON.createObjectNode();
        result.put("epoch", now.memberEpoch());
        result.put("previous", now.previousMemberEpoch());
        result.put("state", now.state().name());
        write(now.assignedTasks(), result.putObject("assigned"));
        write(now.tasksPendingRevocation(), result.putObject("pending"));
        return result;
    }

    private static StreamsGroupMember member(JsonNode member) {
        return new StreamsGroupMember.Builder(member.get("id").asText())
            .setProcessId(member.get("process_id").asText())
            .setInstanceId(null)
            .setMemberEpoch(member.get("epoch").asInt())
            .setPreviousMemberEpoch(member.get("previous").asInt())
            .setState(MemberState.valueOf(member.get("state").asText()))
            .setAssignedTasks(withEpochs(member.get("assigned")))
            .setTasksPendingRevocation(withEpochs(member.get("pending")))
            .build();
    }

    private static TasksTuple tasks(JsonNode roles) {
        return new TasksTuple(sets(roles.get("active")), sets(roles.get("standby")), Map.of());
    }

    private static TasksTupleWithEpochs withEpochs(JsonNode roles) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        roles.get("active").forEach(each -> active
            .computeIfAbsent(each.get(0).asText(), x -> new HashMap<>()).put(each.get(1).asInt(), each.get(2).asInt()));
        return new TasksTupleWithEpochs(active, sets(roles.get("standby")), Map.of());
    }

    private static Map<String, Set<Integer>> sets(JsonNode tasks) {
        Map<String, Set<Integer>> sets = new HashMap<>();
        tasks.forEach(each -> sets.computeIfAbsent(each.get(0).asText(), x -> new HashSet<>()).add(each.get(1).asInt()));
        return sets;
    }

    private static void write(TasksTupleWithEpochs tasks, ObjectNode roles) {
        ArrayNode active = roles.putArray("active");
        new TreeMap<>(tasks.activeTasksWithEpochs()).forEach((subtopology, epochs) -> new TreeMap<>(epochs).forEach(
            (number, epoch) -> active.addArray().add(subtopology).add(number).add(epoch)));
        ArrayNode standby = roles.putArray("standby");
        new TreeMap<>(tasks.standbyTasks()).forEach((subtopology, numbers) ->
            numbers.stream().sorted().forEach(number -> standby.addArray().add(subtopology).add(number)));
    }
}
