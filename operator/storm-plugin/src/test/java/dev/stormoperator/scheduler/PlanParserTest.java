package dev.stormoperator.scheduler;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PlanParserTest {

    private static final String GOOD = """
        {"version": 1, "plan_id": "p-1", "topology_id": "t-1", "comment": "unknown fields are fine", "workers": [
          {"supervisor_id": "a", "host": "10.0.0.1", "port": 6700, "executors": [[1, 1], [4, 5]]},
          {"supervisor_id": "b", "host": "10.0.0.2", "port": 6701, "executors": []}]}""";

    private static Plan parse(String document) throws MalformedPlanException {
        return PlanParser.parse("t-1", document.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void aGoodPlanIsReadAsWritten() throws MalformedPlanException {
        Plan expected = new Plan("p-1", "t-1", List.of(
            new Plan.Worker("a", "10.0.0.1", 6700, Set.of(TestCluster.executor(1), TestCluster.executor(4, 5))),
            new Plan.Worker("b", "10.0.0.2", 6701, Set.of())));
        assertEquals(expected, parse(GOOD));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        "version": 1            | "version": 2              | version: 2 should be the number 1
        "version": 1            | "version": "1"            | version: "1" should be the number 1
        "version": 1            | "version": null           | version: null should be the number 1
        "plan_id": "p-1"        | "plan_id": 7              | plan_id: 7 should be a text that is not empty
        "topology_id": "t-1"    | "topology_id": "t-2"      | topology_id: "t-2" should be "t-1", the topology whose node it is in
        "topology_id": "t-1"    | "id": "t-1"               | topology_id: null should be a text that is not empty
        "workers": [            | "workers": 3, "w": [      | workers: 3 should be a list
        "workers": [            | "workers": [ 5,           | workers[0]: 5 should be an object
        "supervisor_id": "b"    | "supervisor_id": ""       | workers[1].supervisor_id: "" should be a text that is not empty
        "host": "10.0.0.1"      | "host": ["x"]             | workers[0].host: ["x"] should be a text that is not empty
        "port": 6700            | "port": "6700"            | workers[0].port: "6700" should be a whole number, 1 to 65535
        "port": 6700            | "port": 6700.0            | workers[0].port: 6700.0 should be a whole number, 1 to 65535
        "port": 6700            | "port": 70000             | workers[0].port: 70000 should be a whole number, 1 to 65535
        "port": 6700            | "port": 99999999999999    | workers[0].port: 99999999999999 should be a whole number, 1 to 65535
        [4, 5]                  | [4, 5, 6]                 | workers[0].executors[1]: [4,5,6] should be [task_start, task_end]
        [4, 5]                  | 4                         | workers[0].executors[1]: 4 should be a list
        [4, 5]                  | [5, 4]                    | workers[0].executors[1][1]: 4 should be a whole number, 5 or more
        [4, 5]                  | [-1, -1]                  | workers[0].executors[1][0]: -1 should be a whole number, 1 or more
        [4, 5]                  | [4, true]                 | workers[0].executors[1][1]: true should be a whole number, 4 or more
        [4, 5]                  | [1, 1]                    | workers[0].executors[1]: [1,1] should be an executor that the plan names once
        "executors": []         | "executors": [[1, 1]]     | workers[1].executors[0]: [1,1] should be an executor that the plan names once
        """, quoteCharacter = '\'')
    void aMalformedPlanIsRefusedByFieldAndValue(String part, String instead, String message) {
        String document = GOOD.replace(part, instead);
        assertEquals(false, document.equals(GOOD), "the test replaces something");
        assertEquals(message, assertThrows(MalformedPlanException.class, () -> parse(document)).getMessage());
    }

    @Test
    void twoWorkersInOneSlotAreRefused() {
        String document = GOOD.replace("\"b\"", "\"a\"").replace("6701", "6700");
        String message = assertThrows(MalformedPlanException.class, () -> parse(document)).getMessage();
        assertEquals("workers[1]: \"a:6700\" should be a slot that no other worker of the plan names", message);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        {"version": 1            | plan: not JSON in UTF-8
        {"version": 1} trailing  | plan: not JSON in UTF-8
        {version: 1}             | plan: not JSON in UTF-8
        ''                       | plan: not JSON in UTF-8
        []                       | plan: [] should be an object
        null                     | plan: null should be an object
        """, quoteCharacter = '\'')
    void whatIsNoJsonObjectIsRefused(String document, String message) {
        MalformedPlanException problem = assertThrows(MalformedPlanException.class, () -> parse(document));
        assertEquals(message, problem.getMessage().substring(0, message.length()));
        assertNull(problem.planId());
    }

    @Test
    void bytesThatAreNoUtf8AreRefused() {
        byte[] document = {'"', (byte) 0xC3, (byte) 0x28, '"'};
        assertThrows(MalformedPlanException.class, () -> PlanParser.parse("t-1", document));
    }

    @Test
    void theIdOfAMalformedPlanIsKeptWhereItCanBeRead() {
        String document = GOOD.replace("\"version\": 1", "\"version\": 9");
        assertEquals("p-1", assertThrows(MalformedPlanException.class, () -> parse(document)).planId());
    }
}
