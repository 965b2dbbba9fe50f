package dev.stormoperator.workloads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RateProfileTest {

    private static double rate(String profile, double seconds) {
        return RateProfile.parse("--rate", profile).perSecond(seconds);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        300                       | 0      | 300
        steady:0.5                | 1e6    | 0.5
        step:300,600@60           | 59.9   | 300
        step:300,600@60           | 60     | 600
        step:300,600@60,100@120   | 500    | 100
        step:300,600@60/180s      | 239    | 300
        step:300,600@60/180s      | 240    | 600
        sine:100..500/120s        | 0      | 300
        sine:100..500/120s        | 30     | 500
        sine:100..500/120s        | 90     | 100
        spike:200,900@60+10s      | 59.9   | 200
        spike:200,900@60+10s      | 60     | 900
        spike:200,900@60+10s      | 70     | 200
        spike:200,900@60+10s/300s | 365    | 900
        spike:200,900@60+10s/300s | 659    | 200
        """)
    void ratesFollowTheirProfile(String profile, double seconds, double expected) {
        assertEquals(expected, rate(profile, seconds), 1e-9);
    }

    @Test
    void randomRatesAreDrawnAnewEachPeriodAndTheSameForTheSameSeed() {
        String profile = "random:50..400/10s;seed=7";
        assertEquals(rate(profile, 0), rate(profile, 9.9));
        assertNotEquals(rate(profile, 0), rate(profile, 10));
        assertEquals(rate(profile, 123), rate(profile, 123));
        assertNotEquals(rate(profile, 123), rate("random:50..400/10s", 123));
        for (int second = 0; second < 1000; second++) {
            assertTrue(rate(profile, second) >= 50 && rate(profile, second) <= 400);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        steady:           | steady:RATE, e.g. steady:300
        -3                | steady:RATE, e.g. steady:300
        steady:1e3        | steady:RATE, e.g. steady:300
        step:300          | step:RATE,RATE@SECONDS,...[/PERIODs], e.g. step:300,600@60
        step:300,600      | step:RATE,RATE@SECONDS,..., e.g. step:300,600@60
        step:1,2@60,3@50  | steps whose seconds grow, e.g. step:300,600@60,100@120
        step:1,2@60/30s   | a profile whose period is longer than 0 s and than what it holds
        sine:100-500/120s | sine:LOW..HIGH/PERIODs, e.g. sine:100..500/120s
        sine:1..2/0s      | a profile whose period is longer than 0 s and than what it holds
        sine:5..1/10s     | LOW..HIGH with LOW at most HIGH
        random:50..400    | random:LOW..HIGH/PERIODs[;seed=N], e.g. random:50..400/10s;seed=7
        spike:200,900@60  | spike:RATE,HIGH@SECONDS+SECONDSs[/PERIODs], e.g. spike:200,900@60+10s
        square:1..2/10s   | one of steady:, step:, sine:, random:, spike:, or a plain number
        """)
    void whatIsNoProfileIsRefusedByFieldAndValue(String profile, String right) {
        String message = assertThrows(IllegalArgumentException.class, () -> rate(profile, 0)).getMessage();
        assertEquals("--rate: \"" + profile + "\" should be " + right, message);
    }
}
